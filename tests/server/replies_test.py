#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the server replies against what /openapi.json says of it: every path, whole and streamed, with log-probabilities, tools, thoughts and errors. A reply
has no member that its schema lacks and lacks none that it names; and each schema has only what some reply had. Without Python's jsonschema it is skipped."""
import json
import re
import signal
import time
import unittest

from gguf_file import with_control_tokens
from server_case import DRAFT, ONE_THREAD, SLOW, TARGET, ServerCase, jsonschema, main, new_folder

SHARED = "#/components/schemas/"
CHATS, COMPLETIONS, RESPONSES, MESSAGES, VERIFY = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/verify"
ASKED = {"role": "user", "content": "Is Rome warm?"}
CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 5}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": CITY}}
FORCED = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 120}
THOUGHT_MARKS, FILL_MARKS = ["<think>", "</think>"], ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
THINKER = "{# </think> #}{% for m in messages %}{{ m.content }}{% endfor %}<think>"
# What a reply has in states that no request here can bring about, and values that depend on the hour.
UNSEEN = re.compile(r"\|\w+Error$|ResponseEvent\|9|=response\.failed$|Response\.status=failed|Response\.error\|0|Health\.error|"
                    r"Health\.status=(draining|error)|stop_type=none|LlamaCppChosen\.stop_type|\.estimated_speedup|per_second|per_token_ms|"
                    r"State\.copy\.(error|state=(refused|waiting|making))$")


def branches(schema):
    """The kinds that a schema may be of, each with its form's name or its number."""
    return [(kind["$ref"].rsplit("/", 1)[1] if "$ref" in kind else i, kind) for i, kind in enumerate(schema.get("anyOf", []))]


def resolved(schema, shared):
    return shared[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema


class Forms:
    """The schemas of a document, and what of them replies have had."""

    def __init__(self, document):
        self.document, self.shared = document, document["components"]["schemas"]
        self.definitions = json.loads(json.dumps(self.shared).replace(SHARED, "#/$defs/"))
        self.seen, self.validators = set(), {}

    def validator(self, schema):
        key = json.dumps(schema)
        if key not in self.validators:
            self.validators[key] = jsonschema.Draft202012Validator({**json.loads(key.replace(SHARED, "#/$defs/")), "$defs": self.definitions})
        return self.validators[key]

    def of(self, method, path, status, kind):
        """The schema of a reply with this type, or None."""
        for template, methods in self.document["paths"].items():
            if method.lower() in methods and re.fullmatch(re.sub(r"{\w+}", "[^/]+", template), path):
                replies = methods[method.lower()]["responses"]
                reply = replies.get(str(status), replies["default"])
                return resolved(reply, self.document["components"]["responses"])["content"].get(kind, {}).get("schema")
        return None

    def check(self, schema, value, where):
        """Fails unless the value has this form; notes what it has."""
        fault = jsonschema.exceptions.best_match(self.validator(schema).iter_errors(value))
        assert fault is None, f"{where}: {fault.message[:600]} at {list(fault.absolute_path)}"
        self.note(schema, value, "")

    def note(self, schema, value, where):
        if "$ref" in schema:
            where = schema["$ref"].rsplit("/", 1)[1]
        schema = resolved(schema, self.shared)
        for i, kind in branches(schema):
            if self.validator(kind).is_valid(value):
                self.seen.add(f"{where}|{i}")
                self.note(kind, value, f"{where}|{i}")
                break
        if isinstance(schema.get("type"), list):
            kind = "null" if value is None else {bool: "boolean", str: "string", int: "integer", float: "number"}[type(value)]
            self.seen.add(f"{where}:{kind if kind in schema['type'] else 'number'}")
        if "enum" in schema:
            self.seen.add(f"{where}={value}")
        if isinstance(value, dict):
            for name, inner in schema.get("properties", {}).items():
                if name in value:
                    self.seen.add(f"{where}.{name}")
                    self.note(inner, value[name], f"{where}.{name}")
            others = schema.get("additionalProperties")
            for name in value if isinstance(others, dict) else ():
                self.note(others, value[name], where + ".*")
        if isinstance(value, list) and "items" in schema:
            for item in value:
                self.note(schema["items"], item, where + "[]")

    def all_of(self, schema, where, known):
        """All that a reply with this schema may have."""
        if "$ref" in schema:
            name = schema["$ref"].rsplit("/", 1)[1]
            if name in known:
                return
            known.add(name)
            yield from self.all_of(self.shared[name], name, known)
            return
        for i, kind in branches(schema):
            yield f"{where}|{i}"
            yield from self.all_of(kind, f"{where}|{i}", known)
        if isinstance(schema.get("type"), list):
            yield from (f"{where}:{kind}" for kind in schema["type"])
        yield from (f"{where}={value}" for value in schema.get("enum", []))
        for name, inner in schema.get("properties", {}).items():
            yield f"{where}.{name}"
            yield from self.all_of(inner, f"{where}.{name}", known)
        if isinstance(schema.get("additionalProperties"), dict):
            yield from self.all_of(schema["additionalProperties"], where + ".*", known)
        if "items" in schema:
            yield from self.all_of(schema["items"], where + "[]", known)

    def schemas(self):
        """(method, path, status, type, schema) of every reply."""
        for path, methods in self.document["paths"].items():
            for method, operation in methods.items():
                for status, reply in operation["responses"].items():
                    for kind, content in resolved(reply, self.document["components"]["responses"])["content"].items():
                        yield method, path, status, kind, content["schema"]


def parts_of(kind, data):
    """What a reply is made of: its one value, or the data of its events."""
    if kind == "application/json":
        return [json.loads(data)]
    if kind == "application/x-ndjson":
        return [json.loads(line) for line in data.splitlines()]
    if kind == "text/event-stream":
        lines = [line.removeprefix(b"data: ") for line in data.splitlines() if line.startswith(b"data: ")]
        return [json.loads(line) for line in lines if line != b"[DONE]"]
    return [data.decode()]


@unittest.skipIf(jsonschema is None, "Python has no jsonschema")
class Replies(ServerCase):
    FLAGS = (*ONE_THREAD, "-q")

    @classmethod
    def setUpClass(cls):
        folder = new_folder(cls.addClassCleanup)
        cls.ids = with_control_tokens(TARGET, folder / "marks.gguf", [*THOUGHT_MARKS, *FILL_MARKS])
        common = {"add_cleanup": cls.addClassCleanup}
        fixed = ("--num-speculative-tokens", "4", "--lookahead", "fixed")
        cls.plain = cls.start("-md", DRAFT, *fixed, "--chat-template", "chatml", "--alias", "tales", "--alias", "other", **common)
        cls.thinker = cls.start("--spec-type", "ngram,suffix", *fixed, "--slot-save-path", str(folder), model=str(folder / "marks.gguf"), template=THINKER,
                                **common)
        cls.forms = Forms(cls.plain.get("/openapi.json"))
        cls.checked = set()

    def send(self, method, path, body=None, server=None, headers=None):
        """The parts of a reply, each checked; None: another status was expected."""
        status, fields, data = (server or self.plain).send(method, path, body, headers=headers)
        kind = fields["Content-Type"].split(";")[0]
        schema = self.forms.of(method, path.split("?")[0], status, kind)
        self.assertIsNotNone(schema, (method, path, status, kind))
        parts = parts_of(kind, data)
        for part in parts:
            self.forms.check(schema, part, (method, path, body, status, json.dumps(part)[:1500]))
        self.checked.add((json.dumps(schema), kind))
        return status, parts

    def ok(self, path, body=None, server=None, method="POST"):
        status, parts = self.send(method, path, body, server)
        self.assertEqual(status, 200, (path, body, parts))
        return parts[-1]

    def both(self, path, body, server=None):
        self.ok(path, {**body, "stream": True}, server)
        return self.ok(path, {**body, "stream": False}, server)

    def test_1_openai(self):
        for body in ({}, {"logprobs": 2}, {"logprobs": 1, "echo": True, "n": 2}, {"stop": ["."], "max_tokens": 200},
                     {"return_token_ids": True, "temperature": 0}, {"temperature": 1.5, "seed": 1, "max_tokens": 60}):
            body = {"prompt": "Once upon a time", "max_tokens": 12, **body}
            self.both(COMPLETIONS, body)
            self.ok(COMPLETIONS, {**body, "stream": True, "speculative": {"trace": True}, "stream_options": {"include_usage": True}})
        for body in ({"max_tokens": 9}, {"max_tokens": 9, "logprobs": True, "top_logprobs": 2}, {"n": 2, "max_tokens": 4, "verbosity": "high"}, FORCED,
                     {"stop": ["."], "max_tokens": 200}):
            body = {"messages": [ASKED], "seed": 3, **body}
            for server in (self.plain, self.thinker):
                body = {**body, "logit_bias": {self.ids["</think>"]: 9}} if server is self.thinker and "tools" not in body else body
                self.both(CHATS, body, server)
                self.ok(CHATS, {**body, "stream": True, "speculative": {"trace": True}, "stream_options": {"include_usage": True}}, server)
        self.ok(VERIFY, {"prompt": "Once upon a time", "drafts": [5, 6], "seed": 7, "logprobs": 1, "max_tokens": 9, "priority": 1})
        self.ok(VERIFY, {"messages": [ASKED], "drafts": "upon", "max_tokens": 1})
        # A text that ends with its first token, and so with a draft of that.
        body = {"prompt": "Once upon a time, there was a little", "drafts": [], "temperature": 0, "stop": list("aeiou")}
        self.ok(VERIFY, {**body, "drafts": self.ok(VERIFY, body)["tokens"]})
        self.assertEqual(self.send("POST", COMPLETIONS, {"prompt": "a", "temperature": "x"})[0], 400)

    def test_2_responses(self):
        function = {"type": "function", "name": "weather", "parameters": CITY}
        stored = None
        for body in ({"max_output_tokens": 5, "temperature": 0.5, "top_p": 0.9, "instructions": "Be brief.", "truncation": "auto", "metadata": {"a": "b"}},
                     {"stop": ["."], "store": False, "reasoning": {"effort": "low"}},
                     {"tools": [function], "tool_choice": {"type": "function", "name": "weather"}, "max_output_tokens": 120}):
            for server in (self.plain, self.thinker):
                if server is self.thinker and "tools" not in body:
                    body = {**body, "logit_bias": {self.ids["</think>"]: 9}}
                reply = self.both(RESPONSES, {"input": "Is Rome warm?", "seed": 3, **body}, server)
                stored = reply["id"] if reply["store"] and server is self.plain else stored
        for n in (15, 20, 25, 30):  # a call that the length cuts, behind its name
            self.ok(RESPONSES, {"input": "Hi", "tools": [function], "tool_choice": "required", "max_output_tokens": n})
        for seed in range(6):  # a thought that ends
            self.ok(RESPONSES, {"input": "Hi", "temperature": 1, "max_output_tokens": 60, "seed": seed, "logit_bias": {self.ids["</think>"]: 7}}, self.thinker)
        again = self.both(RESPONSES, {"input": "And now?", "previous_response_id": stored, "max_output_tokens": 3})
        for path in (f"{RESPONSES}/{again['id']}", f"{RESPONSES}/{again['id']}/input_items", f"{RESPONSES}/{again['id']}/input_items?limit=1"):
            self.ok(path, method="GET")
        last = self.ok(f"{RESPONSES}/{again['id']}/input_items", method="GET")["last_id"]
        self.ok(f"{RESPONSES}/{again['id']}/input_items?after={last}", method="GET")
        self.assertEqual(self.send("POST", f"{RESPONSES}/{again['id']}/cancel")[0], 400)
        self.ok(f"{RESPONSES}/{again['id']}", method="DELETE")

    def test_3_messages(self):
        tool = {"name": "weather", "input_schema": CITY}
        for body in ({"max_tokens": 5}, {"max_tokens": 200, "stop_sequences": ["."], "tools": [{"type": "web_search_20250305", "name": "web_search"}]},
                     {"max_tokens": 120, "tools": [tool], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}):
            for server in (self.plain, self.thinker):
                if server is self.thinker and "tool_choice" not in body:
                    body = {**body, "logit_bias": {self.ids["</think>"]: 9}}
                self.both(MESSAGES, {"messages": [ASKED], "seed": 3, **body}, server)
        self.ok(MESSAGES + "/count_tokens", {"messages": [ASKED]})

    def test_4_embeddings(self):
        for body in ({"input": "a"}, {"input": ["a", [5, 6]], "encoding_format": "base64"}, {"content": "a"}):
            for path in ("/v1/embeddings", "/embeddings", "/embedding"):
                self.ok(path, body)
        self.ok("/embedding", {"content": ["a b c"], "pooling": "none", "encoding_format": "base64"})
        for path in ("/v1/rerank", "/v1/reranking"):
            for name in ("documents", "texts"):
                for more in ({}, {"return_documents": True}):
                    self.ok(path, {"query": "a", name: ["a", "b"], **more})
        for body in ({"input": "a"}, {"input": []}):
            self.ok("/api/embed", body)
        for body in ({"prompt": "a"}, {"prompt": ""}):
            self.ok("/api/embeddings", body)

    def test_5_llama_cpp(self):
        name = self.ok("/props", method="GET")["eos_token"]
        end = self.ok("/tokenize", {"content": name, "parse_special": True})["tokens"][-1]
        forms = self.forms.shared["LlamaCppReply"]["properties"]
        chosen = {"n_probs": 1, "samplers": ["top_k"], "response_fields": [name for name in forms if name != "index"]}
        for body in ({}, chosen, {"response_fields": ["index"]}, {"n_probs": 2, "return_tokens": True},
                     {"stop": ["."], "n_predict": 200, "samplers": ["top_k"]}, {"prompt": ["Once", "Then"]},
                     {"response_fields": ["content", "timings/prompt_n"]}, {"n_predict": 500, "ignore_eos": True}, {"logit_bias": [["a", False], [5, 1]]},
                     {"logit_bias": [[end, 100]]}, {"prompt": ["Once", "Then"], "response_fields": ["content"]}):
            reply = self.both("/completion", {"prompt": "Once", "n_predict": 4, **body})
            if not {"response_fields", "prompt"} & set(body):
                self.forms.check({"$ref": SHARED + "LlamaCppReply"}, reply, body)
        for body in ({}, {"n_probs": 1}, {"response_fields": ["stop"]}):
            self.both("/infill", {"input_prefix": "Once", "input_suffix": "end.", "n_predict": 4, **body}, self.thinker)
        self.assertEqual(self.send("POST", "/infill", {"input_prefix": "Once", "input_suffix": "end."})[0], 501)
        for path in ("/props", "/slots"):
            self.ok(path, method="GET", server=self.thinker)
        self.assertEqual(self.send("POST", "/props", {})[0], 501)
        self.ok("/completion", {"prompt": "Once", "n_predict": 4, "id_slot": 0}, self.thinker)
        for action in ("save", "restore", "erase"):
            self.ok(f"/slots/0?action={action}", {"filename": "slot"}, self.thinker)
        for body in ({"content": "a"}, {"content": "a", "with_pieces": True}):
            self.ok("/tokenize", body)
        self.ok("/detokenize", {"tokens": [5, 6]})
        self.ok("/apply-template", {"messages": [ASKED]})

    def test_6_ollama(self):
        options = {"num_predict": 5, "seed": 3}
        for server in (self.plain, self.thinker):
            for body in ({}, {"options": {"num_predict": 200, "stop": ["."]}}, {"tools": [TOOL], "tool_choice": "required", "options": {"num_predict": 120}},
                         {"tools": [TOOL], "tool_choice": "required", "options": {"num_predict": 12}}, {"messages": []}):
                self.both("/api/chat", {"messages": [ASKED], "options": options, **body}, server)
            for body in ({}, {"prompt": ""}, {"options": {"num_predict": 600}}, {"options": {"num_predict": 200, "stop": ["."]}}):
                self.both("/api/generate", {"prompt": "Once", "options": options, **body}, server)
        for path in ("/api/tags", "/api/ps", "/api/version"):
            self.ok(path, method="GET")
        self.ok("/api/show", {})
        for path in ("pull", "push", "create", "copy", "delete"):
            self.assertEqual(self.send("DELETE" if path == "delete" else "POST", f"/api/{path}", {})[0], 501)

    def test_7_the_server(self):
        for path in ("/v1/models", "/v1/models/tales", "/version", "/health", "/v1/speculation", "/openapi.json", "/metrics", "/", "/index.html"):
            self.ok(path, method="GET")
        self.ok("/v1/models", method="GET", server=self.thinker)
        server = self.serve("--spec-type", "none")
        for path in ("/v1/models", "/props", "/v1/speculation", "/api/show"):
            self.send("POST" if "show" in path else "GET", path, {} if "show" in path else None, server)
        server = self.serve("--spec-type", "self", "--self-draft", "Q4_0")
        self.assertEqual(self.ok("/v1/speculation", method="GET", server=server)["copy"]["state"], "ready")

    def test_8_errors(self):
        """Every path refuses in the form of its API, whoever asks in whatever way."""
        for path, methods in self.forms.document["paths"].items():
            for method, operation in methods.items():
                with self.subTest(method=method, path=path):
                    concrete = path.replace("{name}", "nothing")
                    status, _ = self.send(method.upper(), concrete, None if method == "get" else {"a_field": 1}, headers={"Host": "elsewhere.example"})
                    self.assertEqual(status, 403)
                    if "requestBody" in operation:
                        status, _ = self.send("POST", concrete, b"[" * 9)
                        self.assertIn(status, (400, 501))
                        self.assertEqual(self.send("POST", concrete, b"a", headers={"Content-Type": "text/plain"})[0], 415)
                    if "{name}" in path:  # this server has no folder for slots
                        self.assertEqual(self.send(method.upper(), concrete)[0], 501 if path.startswith("/slots") else 404)

    def test_9_errors_in_streams(self):
        server = self.serve("--spec-type", "none", "--chat-template", "chatml", "--parallel", "8", **SLOW)
        long = {"stream": True, "ignore_eos": True, "max_tokens": 400}
        chat = {"messages": [ASKED]}
        asked = [(COMPLETIONS, {**long, "prompt": "Once", "n": 2}), (CHATS, {**long, **chat}),
                 (RESPONSES, {"input": "a", "stream": True, "ignore_eos": True}),
                 (MESSAGES, {**chat, "stream": True, "max_tokens": 400}), ("/completion", {**long, "prompt": "Once"}),
                 ("/api/chat", chat), ("/api/generate", {"prompt": "Once"})]
        begun = [(path, *server.begin(path, body)) for path, body in asked]
        begun = [(path, connection, response) for path, connection, response in begun if response.status == 200]
        server.process.send_signal(signal.SIGINT)
        while server.send("GET", "/health")[0] != 503:  # it drains; the second one ends that
            time.sleep(0.01)
        server.process.send_signal(signal.SIGINT)
        server.wait()
        failed = 0
        for path, connection, response in begun:
            kind = response.headers["Content-Type"].split(";")[0]
            schema = self.forms.of("POST", path, 200, kind)
            parts = parts_of(kind, response.read())
            connection.close()
            for part in parts:
                self.forms.check(schema, part, (path, part))
            failed += "error" in json.dumps(parts[-1])
        self.assertGreater(failed, 0)

    def test_z_nothing_is_invented(self):
        unchecked = {(method, path, kind) for method, path, _, kind, schema in self.forms.schemas() if (json.dumps(schema), kind) not in self.checked}
        self.assertEqual(unchecked, set())
        known = set()
        everything = {what for *_, schema in self.forms.schemas() for what in self.forms.all_of(schema, "", known)}
        unseen = sorted(what for what in everything - self.forms.seen if not UNSEEN.search(what))
        self.assertEqual(unseen, [])
        self.assertLess(len(json.dumps(self.forms.document)), 300000)


if __name__ == "__main__":
    main()
