#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ollama's API: its answers are those of OpenAI's chats and completions to the same questions, whole and streamed; what it accepts, what it refuses and in
which form; what it says of the model."""
import datetime
import json
import os

from server_case import DRAFT, TARGET, ServerCase, main

BEGUN = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
NAME = "tales-9m-q8_0"
CHAT, GENERATE, CHATS = "/api/chat", "/api/generate", "/v1/chat/completions"
MESSAGE = {"role": "user", "content": "Is Rome warm?"}
OPTIONS = {"temperature": 0, "num_predict": 16}
WEATHER = {"type": "object", "properties": {"unit": {"enum": ["C", "F"]}, "city": {"type": "string", "maxLength": 9}}, "required": ["unit", "city"]}
NOW = {"type": "object", "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in (("weather", WEATHER), ("now", NOW))]
FORCED = {"messages": [MESSAGE], "tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}
ROLES = "{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}"


class Ollama(ServerCase):
    def lines(self, server, path, body):
        """The parts of a stream, which is Ollama's default."""
        status, headers, data = server.send("POST", path, body)
        self.assertEqual((status, headers["Content-Type"]), (200, "application/x-ndjson"), data)
        self.assertTrue(data.endswith(b"\n"))
        parts = [json.loads(line) for line in data.decode().splitlines()]
        self.assertEqual([part["done"] for part in parts], [False] * (len(parts) - 1) + [True])
        return parts

    def refused(self, server, path, body, begin="", status=400, **options):
        """The message, which begins so."""
        message = server.error(path, body, status, **options)
        self.assertIsInstance(message, str)
        self.assertEqual(message[:len(begin)], begin)
        return message

    def count(self, server, body, written):
        """The reply to a chat whose prompt has as many tokens as this text."""
        reply = server.post(CHAT, {"stream": False, "options": {"num_predict": 1}, **body})
        self.assertEqual(reply["prompt_eval_count"], len(server.post("/tokenize", {"content": written, "add_special": True})["tokens"]))
        return reply

    def check_end(self, reply):
        at = datetime.datetime.fromisoformat(reply["created_at"][:26] + "+00:00")
        self.assertTrue(BEGUN <= at <= datetime.datetime.now(datetime.timezone.utc))
        self.assertTrue(reply["created_at"].endswith("Z"))
        for name in ("total_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"):
            self.assertGreater(reply[name], 0, name)
        self.assertGreaterEqual(reply["total_duration"], reply["eval_duration"])

    def test_chats_are_those_of_openai(self):
        server = self.serve()
        for options in ({}, {"seed": 3, "temperature": 1.2, "top_k": 20, "top_p": 0.9, "repeat_penalty": 1.1}, {"stop": ["a"]}):
            sampling = {"temperature": 0, **options}
            theirs = server.post(CHATS, {"messages": [MESSAGE], "max_tokens": 16, **sampling})
            for model in (NAME, NAME + ":latest", NAME + ".gguf"):
                body = {"model": model, "messages": [MESSAGE], "options": {**OPTIONS, **options}}
                whole = server.post(CHAT, {**body, "stream": False})
                choice = theirs["choices"][0]
                self.assertEqual(whole["message"], {"role": "assistant", "content": choice["message"]["content"]})
                self.assertEqual((whole["model"], whole["done"], whole["done_reason"]), (NAME, True, choice["finish_reason"]))
                self.assertEqual((whole["prompt_eval_count"], whole["eval_count"]), (theirs["usage"]["prompt_tokens"], theirs["usage"]["completion_tokens"]))
                self.check_end(whole)
                parts = self.lines(server, CHAT, body)
                self.assertEqual("".join(part["message"]["content"] for part in parts), choice["message"]["content"])
                self.assertEqual(parts[-1]["done_reason"], choice["finish_reason"])
                self.check_end(parts[-1])
                if not options:
                    self.assertGreater(len(parts), 4)

    def test_prompts_are_chats_and_raw_ones_are_completions(self):
        server = self.serve()
        tale, system = "Once upon a time", {"role": "system", "content": "Be brief."}
        asked = {"temperature": 0, "max_tokens": 16}
        chat = server.post(CHATS, {"messages": [{"role": "user", "content": tale}], **asked})["choices"][0]["message"]["content"]
        told = server.post(CHATS, {"messages": [system, {"role": "user", "content": tale}], **asked})["choices"][0]["message"]["content"]
        text = server.completion(prompt=tale, **asked)["choices"][0]["text"]
        for fields, expected in (({}, chat), ({"system": "Be brief."}, told), ({"raw": True}, text)):
            body = {"prompt": tale, "options": OPTIONS, **fields}
            whole = server.post(GENERATE, {**body, "stream": False})
            self.assertEqual((whole["response"], whole["context"], whole["done_reason"]), (expected, [], "length"))
            self.check_end(whole)
            parts = self.lines(server, GENERATE, body)
            self.assertEqual("".join(part["response"] for part in parts), expected)
            self.check_end(parts[-1])

    def test_raw_prompts_have_control_tokens(self):
        server = self.serve()
        tokens = server.post("/tokenize", {"content": "</s>", "add_special": True, "parse_special": True})["tokens"]
        reply = server.post(GENERATE, {"prompt": "</s>", "raw": True, "stream": False, "options": {"num_predict": 1}})
        self.assertEqual(reply["prompt_eval_count"], len(tokens))

    def test_prompts_stand_alone_where_there_is_no_template(self):
        server = self.serve(model=DRAFT)
        text = server.completion(prompt="Once upon a time", temperature=0, max_tokens=16)["choices"][0]["text"]
        for raw in (False, True):
            body = {"prompt": "Once upon a time", "raw": raw, "options": OPTIONS}
            self.assertEqual(server.post(GENERATE, {**body, "stream": False})["response"], text)
            self.assertEqual("".join(part["response"] for part in self.lines(server, GENERATE, body)), text)
            self.refused(server, GENERATE, {**body, "system": "Be brief."}, "system: ")
        self.assertIn("--chat-template-file", self.refused(server, CHAT, {"messages": [MESSAGE]}))
        self.assertEqual(server.post("/api/show", {})["capabilities"], ["completion"])

    def test_the_format_of_an_answer(self):
        server = self.serve()
        schema = {"type": "object", "properties": {"z": {"enum": ["C", "F"]}, "a": {"enum": [1, 2]}}, "required": ["z", "a"]}
        for path, fields in ((CHAT, {"messages": [MESSAGE]}), (GENERATE, {"prompt": "A tale"})):
            reply = server.post(path, {**fields, "format": schema, "stream": False})
            text = reply["message"]["content"] if path == CHAT else reply["response"]
            self.assertEqual(list(json.loads(text)), ["z", "a"])
            reply = server.post(path, {**fields, "format": "json", "stream": False, "options": {"num_predict": 40}})
            text = reply["message"]["content"] if path == CHAT else reply["response"]
            self.assertIn(text.lstrip()[0], "{[")
            self.refused(server, path, {**fields, "format": "xml"}, "format: ")
            self.assertIn("format", self.refused(server, path, {**fields, "format": {"type": "object", "not": {}}}))

    def test_calls_are_whole(self):
        server = self.serve()
        for seed in range(8):
            body = {**FORCED, "options": {"seed": seed, "temperature": 1}}
            theirs = server.post(CHATS, {**FORCED, "seed": seed, "temperature": 1})["choices"][0]["message"]["tool_calls"]
            expected = [{"function": {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}} for call in theirs]
            with self.subTest(seed=seed):
                whole = server.post(CHAT, {**body, "stream": False})
                self.assertEqual(whole["message"], {"role": "assistant", "content": "", "tool_calls": expected})
                self.assertEqual(whole["done_reason"], "stop")
                parts = self.lines(server, CHAT, body)
                self.assertEqual([call for part in parts for call in part["message"].get("tool_calls", [])], expected)
                self.assertEqual("".join(part["message"]["content"] for part in parts), "")
                if expected[0]["function"]["name"] == "weather":
                    self.assertEqual(list(whole["message"]["tool_calls"][0]["function"]["arguments"]), ["unit", "city"])

    def test_several_calls_and_those_that_the_length_cuts(self):
        server = self.serve()
        for n in (*range(1, 60, 5), 200):
            body = {**FORCED, "parallel_tool_calls": True, "tools": TOOLS[:1], "options": {"seed": 1, "temperature": 1, "num_predict": n}}
            whole = server.post(CHAT, {**body, "stream": False})
            parts = self.lines(server, CHAT, body)
            calls = [call for part in parts for call in part["message"].get("tool_calls", [])]
            self.assertEqual(calls, whole["message"].get("tool_calls", []))
            for call in calls:
                self.assertEqual(list(call["function"]["arguments"]), ["unit", "city"])
            cut = "tool_calls: a call that is not whole is left out"
            self.assertEqual(cut in whole["notices"], cut in parts[-1]["notices"])
        self.assertGreater(len(calls), 1)

    def test_conversations_with_calls_can_be_sent_back(self):
        server = self.serve(template=ROLES.replace("{{ m.content", "{{ m.reasoning_content if m.reasoning_content }}{{ m.content"))
        called = {"role": "assistant", "content": "", "thinking": "Well.\n\"So\" it is.",
                  "tool_calls": [{"function": {"name": "weather", "arguments": {"unit": "C", "city": "Rome"}}}]}
        messages = [MESSAGE, called, {"role": "tool", "tool_name": "weather", "content": "31"}]
        written = ('[user] Is Rome warm?\n[assistant] Well.\n"So" it is.<tool_call>\n{"name": "weather", "arguments": {"unit": "C", "city": "Rome"}}\n</tool_call>\n'
                   "[user] <tool_response>\n31\n</tool_response>\n")
        self.count(server, {"messages": messages}, written)

    def test_results_name_their_calls(self):
        server = self.serve(template="{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.id }}={{ c.function.arguments | tojson }} {% endfor %}"
                                     "{% if m.role == 'tool' %}{{ m.tool_call_id }}:{{ m.name }} {% endif %}{% endfor %}{{ tools | tojson if tools }}")
        calls = [{"function": {"name": name, "arguments": {"n": n}}} for n, name in enumerate("aba")]
        results = [{"role": "tool", "tool_name": name, "content": "1"} for name in "baa"]
        messages = [{"role": "assistant", "content": "", "tool_calls": calls}, *results]
        self.count(server, {"messages": messages}, 'call_0={"n": 0} call_1={"n": 1} call_2={"n": 2} call_1:b call_0:a call_2:a ')

    def test_templates_hear_whether_to_think(self):
        server = self.serve(template=ROLES)
        for think in (True, False):
            self.assertNotIn("notices", self.count(server, {"messages": [MESSAGE], "think": think}, f"[user] Is Rome warm?\n{think}"))

    def test_a_request_without_a_question_loads_the_model(self):
        server = self.serve()
        for body in ({"messages": []}, {}, {"keep_alive": "5m"}, {"messages": None, "stream": False}):
            reply = server.post(CHAT, {"model": NAME, **body})
            self.assertEqual((reply["done"], reply["done_reason"], reply["message"]), (True, "load", {"role": "assistant", "content": ""}))
        for body in ({"prompt": ""}, {}, {"keep_alive": 0}):
            reply = server.post(GENERATE, {"model": NAME, **body})
            self.assertEqual((reply["done"], reply["done_reason"], reply["response"]), (True, "load", ""))

    def test_what_has_no_effect(self):
        server = self.serve()
        idle = {"num_ctx": 8192, "num_batch": 8, "num_gpu": 1, "main_gpu": 0, "num_thread": 2, "use_mmap": True, "numa": False, "num_keep": 5,
                "penalize_newline": True, "mirostat": 0, "mirostat_tau": 5, "mirostat_eta": 0.1}
        asked = {"messages": [MESSAGE], "stream": False}
        plain = server.post(CHAT, {**asked, "options": OPTIONS})["message"]
        more = {"keep_alive": "5m", "think": False, "logprobs": False, "top_logprobs": 0, "truncate": True, "shift": True, "format": "", "tools": []}
        self.assertEqual(server.post(CHAT, {**asked, **more, "options": {**OPTIONS, **idle}})["message"], plain)
        whole = server.post(CHAT, {**asked, "options": {"temperature": 0, "num_predict": -1}})
        for n in (-2, 0):
            self.assertEqual(server.post(CHAT, {**asked, "options": {"temperature": 0, "num_predict": n}})["eval_count"], whole["eval_count"])

    def test_what_is_refused(self):
        server = self.serve()
        chats = (({"options": {"mirostat": 1}}, "options.mirostat: "), ({"options": {"temperature": "hot"}}, "options.temperature: "),
                 ({"options": {"num_predict": "x"}}, "options.num_predict: "), ({"options": {"num_predct": 1}}, "options.num_predct: "),
                 ({"options": [1]}, "options: "), ({"options": {"stop": [1]}}, "options.stop: "), ({"stream": 1}, "stream: "), ({"think": 1}, "think: "),
                 ({"logprobs": True}, "logprobs: "), ({"steam": True}, "steam: "), ({"messages": "Hi"}, "messages: "), ({"messages": [1]}, "messages[0]: "),
                 ({"messages": [{**MESSAGE, "images": ["aa"]}]}, "messages[0].images: "), ({"messages": [{"content": "a"}]}, "messages[0].role: "),
                 ({"messages": [{"role": "king", "content": "a"}]}, "messages[0].role: "), ({"messages": [{**MESSAGE, "content": 3}]}, "messages[0].content: "),
                 ({"messages": [{**MESSAGE, "tool_calls": 3}]}, "messages[0].tool_calls: "),
                 ({"messages": [{**MESSAGE, "tool_calls": [3]}]}, "messages[0].tool_calls[0]: "),
                 ({"messages": [{**MESSAGE, "tool_calls": [{"function": {"name": "a", "arguments": "b"}}]}]}, "messages[0].tool_calls[0].function.arguments: "),
                 ({"tools": [1]}, "tools[0]: "), ({"messages": [{**MESSAGE, "content": "word " * 600}]}, "messages: "))
        for fields, begin in chats:
            self.refused(server, CHAT, {"messages": [MESSAGE], **fields}, begin)
        prompts = (({"suffix": "b"}, "suffix: "), ({"template": "{{ .Prompt }}"}, "template: "), ({"context": [1]}, "context: "),
                   ({"images": ["aa"]}, "images: "),
                   ({"raw": True, "system": "b"}, "system: "), ({"prompt": 1}, "prompt: "), ({"prompt": "word " * 600}, "prompt: "))
        for fields, begin in prompts:
            self.refused(server, GENERATE, {"prompt": "a", **fields}, begin)
        server.post(GENERATE, {"prompt": "a", "suffix": "", "template": "", "context": [], "images": [], "options": {"num_predict": 1}, "stream": False})
        for body in (b"", b"[]", b"{", b'{"model": "a", "model": "b"}'):
            for path in (CHAT, GENERATE, "/api/show"):
                self.refused(server, path, body)
        for path in (CHAT, GENERATE, "/api/show"):
            self.assertIn("other:latest", self.refused(server, path, {"model": "other:latest"}, status=404))

    def test_there_is_one_model(self):
        server = self.serve("--model-name", "tale,tales")
        version = server.get("/api/version")
        self.assertEqual(version, server.get("/version"))
        summary = server.get("/v1/models")["data"][0]
        tags, ps = server.get("/api/tags")["models"], server.get("/api/ps")["models"]
        for listed in (tags, ps):
            self.assertEqual([(model["name"], model["model"]) for model in listed], [("tale", "tale")])
            self.assertEqual(listed[0]["size"], os.path.getsize(TARGET))
            self.assertRegex(listed[0]["digest"], "^[0-9a-f]{64}$")
            self.assertEqual(listed[0]["details"]["quantization_level"], "Q8_0")
        self.assertEqual(ps[0]["context_length"], summary["meta"]["context_size"])
        for name in ("tale", "tales", "tale:latest"):
            shown = server.post("/api/show", {"model": name, "verbose": True})
            family = shown["details"]["family"]
            self.assertEqual(shown["model_info"], {"general.architecture": family, "general.parameter_count": summary["meta"]["parameters"],
                                                   family + ".context_length": summary["meta"]["context_size"]})
            self.assertEqual(shown["capabilities"], ["completion", "tools"])
        for path in ("pull", "push", "create", "copy", "delete"):
            method = "DELETE" if path == "delete" else "POST"
            self.assertIn("one model", self.refused(server, f"/api/{path}", {"model": "tale"}, status=501, method=method))


if __name__ == "__main__":
    main()
