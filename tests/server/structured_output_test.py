#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers that programs read: JSON Schema, regular expressions, choices and grammars, by every field that asks for them. What the
bundled model writes is read with json and checked with the package jsonschema; skipped (77) without that."""
import datetime
import json
import random
import re
import sys

from server_case import DRAFT, ONE_THREAD, PAIR, ServerCase, main, run_program
from server_testing import joined, reasons, together

try:
    import jsonschema
except ImportError:
    print("skipped: no package jsonschema")
    sys.exit(77)

TALE = {"prompt": "Once upon a time", "max_tokens": 120, "temperature": 1, "seed": 7}
PERSON = {"type": "object", "properties": {"name": {"type": "string", "minLength": 1, "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 130},
                                           "kind": {"enum": ["cat", "dog", "bird"]}},
          "required": ["name", "age", "kind"], "additionalProperties": False}
FORMATS = jsonschema.FormatChecker(["date", "email", "ipv4", "uuid"])
FORMATS.checks("time", ValueError)(lambda value: bool(datetime.time.fromisoformat(value).tzinfo))
FORMATS.checks("date-time", ValueError)(lambda value: bool(datetime.datetime.fromisoformat(value).tzinfo))


def check(value, schema):
    jsonschema.validate(value, schema, jsonschema.Draft202012Validator, format_checker=FORMATS)


def openai_format(schema):
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


class Schemas:
    """Random schemas whose texts are short, so that most answers end."""

    def __init__(self, seed):
        self.draw = random.Random(seed)

    def make(self, depth=3):
        kinds = [self.string, self.integer, self.number, self.constant, self.simple]
        if depth > 0:
            kinds += [self.object, self.object, self.array, self.any_of, self.all_of]
        return self.draw.choice(kinds)(depth)

    def string(self, _):
        extra = self.draw.choice([{"maxLength": self.draw.randint(1, 9), "minLength": self.draw.randint(0, 1)}, {"pattern": "^[a-z]{1,5}( [a-z]{1,5})?$"},
                                  {"pattern": "^(no|yes|x[0-9]{2,3})$"}, {"format": self.draw.choice(["date", "uuid", "ipv4", "date-time", "email", "time"])}])
        return {"type": "string", **extra}

    def bounds(self, scale):
        low = round(self.draw.uniform(-50, 50) * scale, self.draw.randint(0, 2))
        high = round(low + self.draw.uniform(1, 200), 2)
        keys = self.draw.choice([("minimum", "maximum"), ("exclusiveMinimum", "exclusiveMaximum"), ("minimum",), ("exclusiveMinimum", "maximum"), ("maximum",)])
        return {key: (low if "Min" in key or key == "minimum" else high) for key in keys}

    def integer(self, _):
        return {"type": "integer", **self.bounds(self.draw.choice([0.1, 1, 1000]))}

    def number(self, _):
        return {"type": "number", **(self.bounds(1) if self.draw.random() < 0.8 else {})}

    def constant(self, _):
        values = ["a b", "\"q\"\n", 3, -1.5, None, True, [1, {"k": "é"}], {}]
        return {"const": self.draw.choice(values)} if self.draw.random() < 0.4 else {"enum": self.draw.sample(values, self.draw.randint(1, 5))}

    def simple(self, _):
        return {"type": self.draw.choice(["boolean", "null", ["null", "boolean"], "integer"])}

    def object(self, depth):
        names = self.draw.sample(["name", "age", "a", "ab", "é", "with space", "q\"", "$ref"], self.draw.randint(1, 4))
        schema = {"type": "object", "properties": {name: self.make(depth - 1) for name in names}}
        schema["required"] = [name for name in names if self.draw.random() < 0.6]
        if self.draw.random() < 0.6:
            schema["additionalProperties"] = False
        return schema

    def array(self, depth):
        least = self.draw.randint(0, 2)
        schema = {"type": "array", "minItems": least, "maxItems": least + self.draw.randint(0, 2)}
        if self.draw.random() < 0.3:
            schema["prefixItems"] = [self.make(depth - 1) for _ in range(self.draw.randint(1, 2))]
        return {**schema, "items": self.make(depth - 1)}

    def any_of(self, depth):
        return {"anyOf": [self.make(depth - 1) for _ in range(self.draw.randint(2, 3))]}

    def all_of(self, depth):
        one, two = self.object(depth - 1), self.object(depth - 1)
        for part, other in ((one, two), (two, one)):
            part.pop("additionalProperties", None)
            part["properties"] = {name: value for name, value in part["properties"].items() if part is one or name not in other["properties"]}
            part["required"] = [name for name in part["required"] if name in part["properties"]]
        return {"allOf": [one, {"$ref": "#/$defs/two"}], "$defs": {"two": two}} if depth == 3 else {"allOf": [one, two]}


class StructuredOutput(ServerCase):
    FLAGS, SHARED = ("-md", DRAFT, *ONE_THREAD), ("--parallel", "4", "--max-queue", "64", "--chat-template", "chatml")

    def complete(self, **fields):
        return self.server.completion(**{**TALE, **fields})["choices"][0]

    def text(self, **fields):
        choice = self.complete(**fields)
        self.assertEqual(choice["finish_reason"], "stop", choice)
        return choice["text"]

    def chat(self, **fields):
        body = {"messages": [{"role": "user", "content": "Who?"}], "max_tokens": 120, "temperature": 1, "seed": 7, **fields}
        return self.server.post("/v1/chat/completions", body)["choices"][0]

    def assert_refused(self, param, words, path="/v1/completions", **fields):
        start = {"messages": [{"role": "user", "content": "Who?"}]} if "chat" in path else {"prompt": "Once"}
        error = self.server.error(path, {**start, "max_tokens": 4, **fields})
        self.assertEqual((error["param"], error["type"]), (param, "invalid_request_error"), error)
        self.assertIn(words, error["message"])
        self.assertRegex(error["message"], r"\A[^\n]+: [^\n]+; [^\n]+\Z")

    def test_every_field_asks_for_the_same(self):
        text = json.dumps(PERSON)
        wanted = self.text(response_format=openai_format(PERSON))
        check(json.loads(wanted), PERSON)
        for fields in ({"json_schema": PERSON}, {"json_schema": text}, {"guided_json": PERSON}, {"guided_json": text},
                       {"structured_outputs": {"json": PERSON}}, {"structured_outputs": {"json": text, "regex": None}},
                       {"response_format": {"type": "json_object", "schema": PERSON}}):
            self.assertEqual(self.text(**fields), wanted, fields)
        chats = [self.chat(**fields)["message"]["content"] for fields in ({"response_format": openai_format(PERSON)}, {"json_schema": PERSON}, {"guided_json": PERSON})]
        self.assertEqual(len(set(chats)), 1, chats)
        check(json.loads(chats[0]), PERSON)
        gbnf = 'root ::= "a" [0-9]{3}'
        texts = {self.text(**fields) for fields in ({"grammar": gbnf}, {"ebnf": gbnf}, {"guided_grammar": gbnf}, {"structured_outputs": {"grammar": gbnf}})}
        self.assertRegex("|".join(texts), r"\Aa[0-9]{3}\Z")
        texts = {self.text(**fields) for fields in ({"regex": "^[a-c]{2,4}-\\d$"}, {"guided_regex": "[a-c]{2,4}-\\d"}, {"structured_outputs": {"regex": "[a-c]{2,4}-\\d"}})}
        self.assertRegex("|".join(texts), r"\A[a-c]{2,4}-[0-9]\Z")
        texts = {self.text(**fields) for fields in ({"guided_choice": ["yes", "no"]}, {"structured_outputs": {"choice": ["yes", "no"]}})}
        self.assertEqual(len(texts), 1)
        self.assertLessEqual(texts, {"yes", "no"})

    def test_members_come_in_the_schemas_order(self):
        names = ["zeta", "alpha", "mid", "\u00e9", "b\"c"]
        schema = {"type": "object", "properties": {name: {"enum": [1, 2]} for name in names}, "required": names}
        for escaped in (True, False):
            body = json.dumps({**TALE, "response_format": openai_format(schema)}, ensure_ascii=escaped, indent=1).encode()
            reply = self.server.post("/v1/completions", body)
            self.assertEqual(list(json.loads(reply["choices"][0]["text"])), names)

    def test_names_may_be_escaped_in_the_body(self):
        body = json.dumps({**TALE, "XX": {"type": "json_schema", "json_schema": {"YY": PERSON, "name": "{\"schema\": 3}"}}})
        body = body.replace("XX", "\\u0072esponse_format").replace("YY", "sch\\u0065ma")
        check(json.loads(self.server.post("/v1/completions", body.encode())["choices"][0]["text"]), PERSON)

    def test_json_mode_gives_an_object(self):
        # The model would write on and on: it is pushed to where strings and objects end.
        biases = {self.server.post("/tokenize", {"content": "a" + end})["tokens"][-1]: 9 for end in ('"', "}")}
        fields = {"response_format": {"type": "json_object"}, "max_tokens": 400, "logit_bias": biases}
        texts = set()
        for seed in range(12):
            choice = self.complete(seed=seed, **fields)
            self.assertTrue(choice["text"].startswith("{"))
            if choice["finish_reason"] == "stop":
                self.assertIsInstance(json.loads(choice["text"]), dict)
                texts.add(choice["text"])
        self.assertGreater(len(texts), 2)
        self.assertEqual(self.complete(seed=1, structured_outputs={"json_object": True}, max_tokens=400, logit_bias=biases), self.complete(seed=1, **fields))
        self.assertEqual(self.complete(response_format={"type": "text"})["text"], self.complete()["text"])
        self.assertEqual(self.complete(response_format=None, json_schema=None, grammar="")["text"], self.complete()["text"])

    def test_random_schemas_hold(self):
        n_length, n_texts, kinds = 0, 0, set()
        for seed in range(60):
            schema = Schemas(seed).make()
            bodies = [{**TALE, "seed": 100 * seed + i, "max_tokens": 300, "response_format": openai_format(schema)} for i in range(3)]
            for reply in together([lambda body=body: self.server.completion(**body) for body in bodies]):
                choice = reply["choices"][0]
                if choice["finish_reason"] == "length":
                    n_length += 1
                    continue
                n_texts += 1
                value = json.loads(choice["text"])
                kinds.add(type(value).__name__)
                check(value, schema)
        print(f"random schemas: {n_texts} texts, {n_length} cut by length")
        self.assertLess(n_length, 9)
        self.assertGreater(n_texts, 150)
        self.assertGreaterEqual(kinds, {"dict", "list", "str", "int"})

    def test_a_tighter_schema_refuses_texts_of_a_wider_one(self):
        """Without that, texts that hold would prove nothing."""
        refused = 0
        tight = {**PERSON, "properties": {**PERSON["properties"], "age": {"type": "integer", "minimum": 0, "maximum": 12}}}
        for seed in range(12):
            value = json.loads(self.text(json_schema=PERSON, seed=seed))
            try:
                check(value, tight)
            except jsonschema.ValidationError:
                refused += 1
            self.assertLessEqual(json.loads(self.text(json_schema=tight, seed=seed))["age"], 12)
        self.assertGreater(refused, 0)

    def test_speculation_changes_no_text(self):
        for i, schema in enumerate([PERSON, *(Schemas(1000 + seed).make() for seed in range(6))]):
            for temperature in (0, 1):
                fields = {"json_schema": schema, "temperature": temperature, "seed": i, "logprobs": 2}
                plain = self.complete(**fields, speculative={"enabled": False})
                for speculative in ({}, {"num_speculative_tokens": 3}, {"type": "ngram"}):
                    self.assertEqual(self.complete(**fields, speculative=speculative), plain, (schema, speculative))
        for fields in ({"regex": "[a-z ]{20,30}\\."}, {"guided_choice": ["the cat sat on the mat", "the cat ran"]}):
            self.assertEqual(self.complete(**fields), self.complete(**fields, speculative={"enabled": False}))

    def test_streams_choices_and_logprobs(self):
        fields = {"n": 3, "logprobs": 1, "response_format": openai_format(PERSON)}
        whole = self.server.completion(**{**TALE, **fields})
        texts = [choice["text"] for choice in whole["choices"]]
        self.assertEqual(len(texts), 3)
        for choice in whole["choices"]:
            check(json.loads(choice["text"]), PERSON)
            self.assertEqual("".join(choice["logprobs"]["tokens"]), choice["text"] + "</s>")
        chunks = self.server.stream("/v1/completions", {**TALE, **fields})
        self.assertEqual(joined(chunks, 3), texts)
        self.assertEqual(reasons(chunks, 3), ["stop"] * 3)

    def test_a_recursive_schema(self):
        schema = {"type": "object", "properties": {"value": {"type": "integer", "minimum": 0, "maximum": 9}, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
                  "required": ["value", "next"], "additionalProperties": False}
        for seed in range(4):
            choice = self.complete(json_schema=schema, seed=seed, max_tokens=300)
            if choice["finish_reason"] == "stop":
                check(json.loads(choice["text"]), schema)

    def test_what_is_wrong_names_its_field(self):
        for path in ("/v1/completions", "/v1/chat/completions"):
            self.assert_refused("response_format", "#/properties/a: the keyword 'not' is not supported", path,
                                response_format=openai_format({"properties": {"a": {"not": {}}}}))
        cases = [
            ("response_format", "\"xml\" is not known", {"response_format": {"type": "xml"}}),
            ("response_format", "not an object", {"response_format": "json"}),
            ("response_format", "type null is not known", {"response_format": {}}),
            ("response_format", "schema is missing", {"response_format": {"type": "json_schema"}}),
            ("response_format", "schema is missing", {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}}),
            ("response_format", "\"sch\" is not known", {"response_format": {"type": "json_schema", "json_schema": {"sch": {}}}}),
            ("response_format", "\"strict\" is not known or of another kind", {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "strict": 1}}}),
            ("response_format", "\"schema\" is not a field of it", {"response_format": {"type": "text", "schema": {}}}),
            ("response_format", "json schema: #: its $ref", {"response_format": openai_format({"$ref": "#"})}),
            ("response_format", "it is not a schema", {"response_format": {"type": "json_object", "schema": 3}}),
            ("json_schema", "leads nowhere", {"json_schema": {"$ref": "#/$defs/none"}}),
            ("json_schema", "it is not valid JSON", {"json_schema": "{"}),
            ("json_schema", "1000000000 is more than", {"json_schema": {"type": "array", "maxItems": 10**9}}),
            ("json_schema", "too large a grammar", {"json_schema": {"properties": {f"p{i}": {"type": "string", "maxLength": 9000} for i in range(40)}}}),
            ("guided_json", "always need themselves", {"guided_json": {"items": {"$ref": "#"}, "minItems": 1}}),
            ("regex", "lookahead", {"regex": "(?=a)"}), ("guided_regex", "not a text", {"guided_regex": 3}),
            ("guided_choice", "0 texts are not in", {"guided_choice": []}), ("guided_choice", "not a list of texts", {"guided_choice": ["a", 1]}),
            ("guided_choice", "too long, with 3000000 bytes together", {"guided_choice": ["x" * 1500000, "y" * 1500000]}),
            ("structured_outputs.choice", "too long, with 600000 bytes together", {"structured_outputs": {"choice": ["x" * 600000]}}),
            ("grammar", "line 1", {"grammar": "root ="}), ("ebnf", "line 1", {"ebnf": "root ="}), ("guided_grammar", "not a text", {"guided_grammar": 1}),
            ("grammar", "repetitions make more than", {"grammar": "root ::= ((\"a\"{9999}){9999}){9999}"}),
            ("structured_outputs.regex", "backreference", {"structured_outputs": {"regex": "(a)\\1"}}),
            ("structured_outputs", "\"structural_tag\" is not followed", {"structured_outputs": {"structural_tag": "x"}}),
            ("structured_outputs", "not an object", {"structured_outputs": "json"}),
            ("json_schema", "response_format is given too", {"json_schema": {}, "response_format": {"type": "json_object"}}),
            ("guided_regex", "grammar is given too", {"grammar": "root ::= \"a\"", "guided_regex": "a"}),
            ("structured_outputs.json", "structured_outputs.choice is given too", {"structured_outputs": {"choice": ["a"], "json": {}}}),
        ]
        for param, words, fields in cases:
            with self.subTest(fields=fields):
                self.assert_refused(param, words, **fields)
        self.assertRegex(self.text(regex="[ab]{3}"), r"\A[ab]{3}\Z")

    # A grammar that takes more than its budget ends its own answer, whole or streamed; the others are what they were.
    def test_a_grammar_beyond_its_budget_ends_its_own_answer_alone(self):
        ambiguous = 'root ::= . root "y" | . root "z" | . root "yz"{0,3} | "!!"'
        words = "can continue in more than 16384 ways at once"
        person = self.text(json_schema=PERSON)
        tale = self.complete()

        def refused():
            return self.server.error("/v1/completions", {**TALE, "grammar": ambiguous})

        def streamed():
            return self.server.send("POST", "/v1/completions", {**TALE, "grammar": ambiguous, "stream": True})[2]

        others = [lambda: self.text(json_schema=PERSON), self.complete]
        for _ in range(2):
            error, stream, text, free = together([refused, streamed, *others])
            self.assertEqual((error["param"], error["code"]), ("grammar", "grammar_too_large"), error)
            self.assertIn(words, error["message"])
            self.assertIn(words, stream.decode())
            self.assertEqual((text, free["text"]), (person, tale["text"]))
        # One that not even the first token's mask holds is refused before it waits for the engine.
        self.assert_refused("grammar", words, grammar='root ::= (""? [a-z]? | [a-z]{1,9}){9999}')

    def test_the_flags_give_the_servers_text(self):
        flags = ["-p", TALE["prompt"], "-n", "120", "--temp", "1", "-s", "7", "--json", "-q"]

        def generate(*more):
            return run_program("generate", *PAIR, *flags, *more)

        wanted = self.text(json_schema=PERSON)
        for more in (["-j", json.dumps(PERSON)], ["--json-schema", json.dumps(PERSON)]):
            done = generate(*more)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["text"], wanted)
        self.assertNotEqual(generate("--json-schema-file", "/nonexistent.json").returncode, 0)
        done = generate("-j", "{}", "--grammar", "root ::= \"a\"")
        self.assertRegex(done.stderr, r"--grammar: --json-schema gives one too; drop one")
        self.assertEqual(done.returncode, 2)
        done = generate("-j", '{"not": {}}')
        self.assertTrue(re.fullmatch(r"foretoken: --json-schema: json schema: #: the keyword 'not' [^\n]+; [^\n]+\n", done.stderr), done.stderr)


if __name__ == "__main__":
    main()
