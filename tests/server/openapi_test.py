#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The document of all paths against the server that gives it: whether bodies are accepted and refused as their schemas say, what each field is told to be,
and what it has. Without Python's jsonschema the comparison is skipped.

usage: openapi_test.py FORETOKEN MODELS [--seed N] [--values N] [--path PATH]
"""
import argparse
import contextlib
import json
import os
import random
import re
import sys
import unittest

from server_case import ONE_THREAD, ServerCase, jsonschema, new_folder, run_program
from server_testing import JSON

SHARED = "#/components/schemas/"
# Values that take the place of others, to see whether both refuse them.
STRANGE = [None, True, False, 0, 1, -1, 7, 0.5, 1.0, -1e9, 1e12, 10 ** 30, "", "x", "none", "auto", [], {}, [1], ["x"], [None], [[]], [{}], [["x", 1]],
           {"x": 1}, {"5": 0.5}, {"type": "text"}, {"type": "text", "text": "x"}, [{"type": "text", "text": "x"}], [{"role": "user", "content": "x"}]]
HELLO = [{"role": "user", "content": "Hi"}]
# Fields that must be there, with values that any model answers, and what ends an answer at once.
PLAIN = {"prompt": "Once", "messages": HELLO, "input": "Once", "drafts": [5], "tokens": [5, 6], "query": "a", "documents": ["b"],
         "content": "Once", "input_prefix": "a", "input_suffix": "b", "max_tokens": 1}
SHORT = {"/v1/completions": {"max_tokens": 1}, "/v1/chat/completions": {"max_tokens": 1}, "/v1/verify": {"max_tokens": 2},
         "/v1/responses": {"max_output_tokens": 1}, "/v1/messages": {"max_tokens": 1}, "/completion": {"n_predict": 1}, "/infill": {"n_predict": 1},
         "/api/chat": {"messages": HELLO, "options": {"num_predict": 1}}, "/api/generate": {"prompt": "Hi", "options": {"num_predict": 1}}}
# Paths that stand for others.
STARS = {"/slots/{name}": "/slots/0?action=erase"}
# What only the whole body, the model or the engine can tell, as the messages say it.
RELATIONS = re.compile("there is no model|is kept for this client|is given too|are given too|stream is not true|logprobs is not true|there are no tools|"
                       r"is none of the tools|is more than max_tokens|another tool has its name|are more than the \d+ that this server|drafts continue|"
                       "the tokens come together|prompts do not come back|do not fit|'none' gives|"
                       "rows of tokens are not cut|raw is true|a text has one form|it has no tokens|"
                       "the one of the calls that gave|beyond 64 bits|this model has no tokens that mark")
# Fields whose texts have a grammar of their own, and what is said of it.
GRAMMARS = {"grammar ebnf guided_grammar": r"line \d|rule", "regex guided_regex": "regular expression|pattern", "tools": "schema",
            "dry_sequence_breakers": r"\d+ tokens|is not a token|no token",
            "json_schema guided_json response_format structured_outputs format output_config text": r"schema|JSON|line \d|grammar",
            "speculative speculative.type speculative.strategy speculative.n_min prediction":
            "num_speculative_tokens|method|strategy|draft|greedy|prediction|temperature"}


class Schemas:
    """Makes values of schemas, and strange ones near to them."""

    def __init__(self, document, seed):
        self.shared = json.loads(json.dumps(document["components"]["schemas"]).replace(SHARED, "#/$defs/"))
        self.random = random.Random(seed)
        self.words = sorted(self.all_words(document))

    def all_words(self, schema):
        """The texts of all lists of words."""
        if isinstance(schema, list):
            return {word for part in schema for word in self.all_words(part)}
        if not isinstance(schema, dict):
            return set()
        own = {word for word in schema.get("enum", []) if isinstance(word, str)} if isinstance(schema.get("enum"), list) else set()
        return own.union(*(self.all_words(part) for part in schema.values()))

    def own(self, schema):
        return {**json.loads(json.dumps(schema).replace(SHARED, "#/$defs/")), "$defs": self.shared}

    def valid(self, schema, value):
        return jsonschema.Draft202012Validator(schema).is_valid(value)

    def make(self, schema):
        """A value that the schema probably takes."""
        pick = self.random
        if schema is True or schema == {}:
            return pick.choice(STRANGE)
        if "$ref" in schema:
            return self.make(self.shared[schema["$ref"].rsplit("/", 1)[1]])
        if "examples" in schema:
            return pick.choice(schema["examples"])
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return pick.choice(schema["enum"])
        parts = [pick.choice(schema["anyOf"])] if "anyOf" in schema else []
        parts += schema.get("allOf", [])
        made = [value for part in parts for value in [self.make({"type": schema["type"], **part} if "type" in schema and "$ref" not in part else part)]]
        kinds = schema.get("type", [] if made else ["object"])
        kind = pick.choice(kinds if isinstance(kinds, list) else [kinds]) if kinds else None
        if kind in ("object", None) and (not made or isinstance(made[0], dict)):
            return self.make_object(schema, made)
        return made[0] if made else self.make_plain(kind, schema)

    def make_object(self, schema, made):
        value = {}
        for name, inner in schema.get("properties", {}).items():
            if inner is not False and (name in schema.get("required", []) or self.random.random() < 0.4):
                value[name] = self.make(inner)
        for part in made:
            value.update(part)
        return value

    def make_plain(self, kind, schema):
        pick = self.random
        if kind == "string":
            return "ab" * 200 if schema.get("maxLength", 0) >= 400 and pick.random() < 0.3 else pick.choice(["a", "Once", "x y"])
        if kind in ("integer", "number"):
            least, most = schema.get("minimum", -3), schema.get("maximum", 1000)
            return pick.choice([least, most, pick.randint(int(least), int(most)) if kind == "integer" or most - least > 2 else pick.uniform(least, most)])
        if kind == "array":
            length = max(schema.get("minItems", 0), pick.randint(0, 2))
            heads = schema.get("prefixItems", [])
            return [self.make(heads[i] if i < len(heads) else schema.get("items", {})) for i in range(length)]
        return {"boolean": pick.random() < 0.5, "null": None}[kind]

    def bend(self, value):
        """The value with one of its parts replaced, left out or added."""
        pick = self.random
        if isinstance(value, dict) and value and pick.random() < 0.75:
            name = pick.choice(sorted(value))
            if pick.random() < 0.2:
                return {key: part for key, part in value.items() if key != name}
            return {**value, name: self.bend(value[name])}
        if isinstance(value, list) and value and pick.random() < 0.75:
            i = pick.randrange(len(value))
            return [*value[:i], self.bend(value[i]), *value[i + 1:]]
        return pick.choice(STRANGE)


def posted(connection, path, body):
    """(status, text) of what is sent over a connection that is kept."""
    connection.request("POST", path, json.dumps(body), JSON)
    response = connection.getresponse()
    return response.status, response.read().decode("utf-8", "replace")


def message_of(text):
    error = json.loads(text)["error"]
    return error if isinstance(error, str) else error["message"]


class Document(ServerCase):
    FLAGS = ONE_THREAD

    @classmethod
    def setUpClass(cls):
        cls.server = cls.start("--chat-template", "chatml", "--slot-save-path", str(new_folder(cls.addClassCleanup)), add_cleanup=cls.addClassCleanup)
        cls.document = cls.server.get("/openapi.json")
        cls.bodies = {path: methods["post"]["requestBody"]["content"]["application/json"]["schema"]
                      for path, methods in cls.document["paths"].items() if "requestBody" in methods.get("post", {})}

    def fields(self, schema, where=""):
        for kind in schema.get("anyOf", []):
            yield from self.fields(kind, where)
        for name, field in schema.get("properties", {}).items():
            yield where + name, field
            yield from self.fields(field, where + name + ".")

    def test_it_has_all_paths(self):
        rows = json.loads(run_program("help", "--json", check=True).stdout)["endpoints"]
        operations = {(method, path): operation for path, methods in self.document["paths"].items() for method, operation in methods.items()}
        self.assertEqual(set(operations), {(row["method"].lower(), row["path"].replace("*", "{name}")) for row in rows})
        ids = [operation["operationId"] for operation in operations.values()]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertTrue(all(operation["summary"] and operation["responses"] for operation in operations.values()))
        for (_, path), operation in operations.items():
            self.assertEqual([parameter["name"] for parameter in operation.get("parameters", [])], re.findall(r"{(\w+)}", path))

    def test_fields_have_what_their_readers_ask_for(self):
        chat = self.bodies["/v1/chat/completions"]
        fields = chat["properties"]
        self.assertEqual({name: value for name, value in fields["temperature"].items() if name != "description"},
                         {"type": ["number", "null"], "minimum": 0, "maximum": 2, "default": 1})
        self.assertEqual(fields["temp"]["description"], "another name of `temperature`")
        self.assertIn("high", fields["reasoning_effort"]["enum"])
        self.assertEqual(fields["stream_options"]["properties"]["include_usage"]["type"], ["boolean", "null"])
        self.assertEqual(chat["required"], ["messages"])
        self.assertEqual(set(self.bodies["/v1/messages"]["required"]), {"messages", "max_tokens"})
        # Those of a translated body are the chat's.
        options = self.bodies["/api/chat"]["properties"]["options"]["properties"]
        self.assertEqual(options["top_k"]["maximum"], fields["top_k"]["maximum"])

    def test_errors_and_the_log_have_the_clients_names(self):
        long = "word " * 2000
        for path, body, param in (("/api/chat", {"messages": HELLO, "options": {"top_k": -5}}, "options.top_k"), ("/api/generate", {"prompt": long}, "prompt"),
                                  ("/v1/messages", {"messages": HELLO, "max_tokens": 1, "stop_sequences": ["x" * 2000]}, "stop_sequences"),
                                  ("/v1/messages/count_tokens", {"messages": HELLO, "output_config": {"format": {"type": "json_schema"}}},
                                   "output_config.format"),
                                  ("/v1/chat/completions", {"messages": HELLO, "stop": ["x" * 2000]}, "stop")):
            error = self.server.error(path, body)
            self.assertTrue((error if isinstance(error, str) else error["message"]).startswith(param + ": "), error)
            self.server.await_log(f"path={path} ", f"param={param} ", "status=400 ")

    def test_every_field_is_described(self):
        for path, schema in self.bodies.items():
            for name, field in self.fields(schema):
                self.assertTrue(field.get("description"), (path, name))

    def test_names_of_limits_are_numbers(self):
        self.assertEqual(re.findall("<[a-z_]+>", json.dumps(self.document)), [])
        stop = self.bodies["/v1/chat/completions"]["properties"]["stop"]
        self.assertIn("up to 16 of them", stop["description"])
        self.assertEqual(self.server.error("/v1/chat/completions", {"messages": HELLO, "stop": ["x"] * 17})["message"],
                         "stop: 17 texts are more than 16; give fewer")

    def test_bodies_are_taken_as_the_schemas_say(self):
        if jsonschema is None:
            self.skipTest("Python has no jsonschema")
        for path, body in self.bodies.items():
            for kind in body.get("anyOf", [body]):
                if OPTIONS.path in ("", path) and kind.get("properties"):
                    with self.subTest(path=path):
                        self.compare(path, kind)

    def compare(self, path, body):
        with contextlib.closing(self.server.connect()) as connection:
            self.compare_by(connection, path, body)

    def compare_by(self, connection, path, body):
        schemas = Schemas(self.document, OPTIONS.seed)
        schema = schemas.own(body)
        needed = [*body.get("required", []), *(choice["anyOf"][0]["required"][0] for choice in body.get("allOf", []))]
        base = {**{name: PLAIN[name] for name in needed}, **SHORT.get(path, {})}
        self.assertTrue(schemas.valid(schema, base), base)
        place = STARS.get(path, path)
        status, text = posted(connection, place, base)
        self.assertIn(status, (200, 501), (base, text))
        faults, seen = [], set()
        for name, field in body["properties"].items():
            for value in self.values(schemas, field):
                sent = {**base, name: value}
                fits = schemas.valid(schema, sent)
                status, text = posted(connection, place, sent)
                seen.add(fits)
                if status not in ((200, 501) if fits else (400, 404)) and not (fits and self.is_related(name, text)):
                    faults.append((name, value, "fits" if fits else "does not fit", status, text[:200]))
        self.assertEqual(seen, {True, False})
        for fault in faults[:OPTIONS.shown]:
            print(path, *fault, file=sys.stderr)
        self.assertEqual(len(faults), 0, path)

    @staticmethod
    def values(schemas, field):
        """Values that fit and values near to them; of a word all that any list of words has."""
        for i in range(OPTIONS.values):
            value = schemas.make(schemas.own(field))
            yield schemas.bend(value) if i % 2 else value
        if isinstance(field.get("enum"), list) and any(word for word in field["enum"] if isinstance(word, str)):
            yield from schemas.words

    @staticmethod
    def is_related(name, text):
        message = message_of(text)
        return RELATIONS.search(message) or any(name in names.split() and re.search(words, message) for names, words in GRAMMARS.items())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("foretoken", type=os.path.abspath)
    parser.add_argument("models", type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--values", type=int, default=6, help="values of each field")
    parser.add_argument("--path", default="")
    parser.add_argument("--shown", type=int, default=8, help="disagreements of each path that are shown")
    parser.add_argument("--only", default="")
    OPTIONS = parser.parse_args()
    unittest.main(argv=[sys.argv[0], *filter(None, [OPTIONS.only])])
