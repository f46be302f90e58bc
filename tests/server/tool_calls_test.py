#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of tools: what a model that answers by a grammar calls is a call in the reply, whole and streamed, with every drafter and without; what a template
tells the model; conversations that have calls. The bundled models know no tools, so calls are forced, or invited by a bias."""
import json
import os
import re

from server_case import DRAFT, MODELS, ONE_THREAD, ServerCase, jsonschema, main
from server_testing import joined_message

CHATS = "/v1/chat/completions"
MESSAGE = {"role": "user", "content": "Is Rome warm?"}
SCHEMAS = {  # short, for a context of 512
    "weather": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}, "unit": {"enum": ["C", "F"]}}, "required": ["city"]},
    "now": {"type": "object", "additionalProperties": False},
    "add": {"type": "object", "properties": {"n": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 3}}, "required": ["n"]},
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()]
HERMES = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}\n<tool_call>\n{{ c.function | tojson }}\n"
          "</tool_call>{% endfor %}<|im_end|>\n{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}")
CODER = ("{% for m in messages %}{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}\n<tool_call>\n<function={{ c.function.name }}>\n"
         "{% for k, v in c.function.arguments | items %}<parameter={{ k }}>\n{{ v }}\n</parameter>\n{% endfor %}</function>\n</tool_call>{% endfor %}\n"
         "{% endfor %}{{ tools | tojson if tools }}")
LLAMA = ('{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}'
         "{% endfor %}\n{% endfor %}{{ tools | tojson if tools }}")
NEMOTRON = ("{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}<TOOLCALL>[{{ c.function | tojson }}]</TOOLCALL>{% endfor %}\n{% endfor %}"
            "{{ tools | tojson if tools }}")
TEMPLATES = {"": None, "hermes": HERMES, "qwen-coder": CODER, "llama": LLAMA, "nemotron": NEMOTRON}


class ToolCalls(ServerCase):
    def check(self, message, names=SCHEMAS):
        """Every call has a name, an id of its own, and arguments that its schema allows."""
        calls = message["tool_calls"]
        self.assertEqual(len({call["id"] for call in calls}), len(calls))
        for call in calls:
            self.assertEqual(call["type"], "function")
            name = call["function"]["name"]
            self.assertIn(name, names)
            arguments = json.loads(call["function"]["arguments"])
            if jsonschema:
                jsonschema.validate(arguments, SCHEMAS[name])

    def test_forced_calls_are_calls_of_the_reply_in_every_form(self):
        for form, template in TEMPLATES.items():
            server = self.serve(template=template)
            for seed in range(6):
                body = {"messages": [MESSAGE], "tools": TOOLS[1:], "tool_choice": "required", "parallel_tool_calls": False, "temperature": 1,
                        "seed": seed}
                with self.subTest(form=form, seed=seed):
                    whole = server.post(CHATS, body)["choices"][0]
                    self.assertEqual(whole["finish_reason"], "tool_calls")
                    self.assertIsNone(whole["message"]["content"])
                    self.assertEqual(len(whole["message"]["tool_calls"]), 1)
                    self.check(whole["message"])
                    message, reason = joined_message(server.stream(CHATS, body))
                    self.assertEqual(reason, "tool_calls")
                    self.assertEqual([call["function"] for call in message["tool_calls"]], [call["function"] for call in whole["message"]["tool_calls"]])
                    self.assertIsNone(message["content"])

    def test_the_log_tells_of_calls(self):
        server = self.serve("--spec-type", "none", common=ONE_THREAD)
        forced = {"messages": [MESSAGE], "tools": TOOLS[1:], "tool_choice": "required", "parallel_tool_calls": False, "seed": 1}
        server.post(CHATS, forced)
        server.stream(CHATS, {**forced, "n": 2})
        server.post("/api/chat", {**{name: value for name, value in forced.items() if name != "seed"}, "stream": False})
        for tools in ({}, {"tools": TOOLS}):
            server.post(CHATS, {"messages": [MESSAGE], "max_tokens": 2, **tools})
        server.end()
        self.assertEqual(re.findall(r" finish=(\S+)", server.log_text()), ["tool_calls", "tool_calls,tool_calls", "tool_calls", "length", "length"])

    def test_a_named_tool_is_the_one_that_is_called(self):
        server = self.serve()
        for choice in ({"type": "function", "function": {"name": "add"}}, {"type": "function", "name": "add"},
                       {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "add"}}]}}):
            message = server.post(CHATS, {"messages": [MESSAGE], "tools": TOOLS, "tool_choice": choice, **({} if choice["type"] == "function" else {"parallel_tool_calls": False})})["choices"][0]["message"]
            self.assertEqual({call["function"]["name"] for call in message["tool_calls"]}, {"add"})
            self.check(message)

    def test_drafts_change_no_call(self):
        drafters = {"plain": ("--spec-type", "none"), "draft model": ("-md", DRAFT), "lookups": ("--spec-type", "ngram,suffix"), "grammar": ("--spec-type", "grammar"),
                    "head": ("-md", os.path.join(MODELS, "tales-9m-mtp-q8_0.gguf")), "eagle": ("-md", os.path.join(MODELS, "tales-9m-eagle-q8_0.gguf"))}
        answers = {}
        for name, flags in drafters.items():
            more = ("--verify", "sample-match", "--lookahead", "fixed", "--num-speculative-tokens", "4") if name != "plain" else ()
            server = self.serve(*flags, *more, "-q", common=ONE_THREAD)
            for seed in range(8):
                body = {"messages": [MESSAGE], "tools": TOOLS, "tool_choice": "required" if seed % 2 else "auto", "temperature": seed % 3 / 2, "seed": seed, "max_tokens": 120,
                        "logit_bias": {str(token): 8 for token in server.post("/tokenize", {"content": "<tool_call>"})["tokens"]} if seed % 2 == 0 else {}}
                choice = server.post(CHATS, body)["choices"][0]
                for call in choice["message"].get("tool_calls", []):
                    call.pop("id")
                answers.setdefault(seed, {})[name] = choice
        for seed, by_drafter in answers.items():
            for name, choice in by_drafter.items():
                self.assertEqual(choice, by_drafter["plain"], (seed, name))

    def test_text_is_free_until_a_call_begins(self):
        server = self.serve()
        body = {"messages": [MESSAGE], "max_tokens": 24, "temperature": 0}
        whole = server.post(CHATS, {**body, "tools": TOOLS})["choices"][0]
        self.assertEqual(whole["finish_reason"], "length")
        self.assertNotIn("tool_calls", whole["message"])
        self.assertTrue(whole["message"]["content"])
        message, reason = joined_message(server.stream(CHATS, {**body, "tools": TOOLS}))
        self.assertEqual((message["content"], reason), (whole["message"]["content"], "length"))

    def test_calls_that_the_length_cuts_are_what_came(self):
        server = self.serve()
        body = {"messages": [MESSAGE], "tools": TOOLS, "tool_choice": "required", "seed": 1, "temperature": 1}
        all_of_it = json.dumps(server.post(CHATS, {**body, "max_tokens": 100})["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])
        for n in range(1, 40, 3):
            choice = server.post(CHATS, {**body, "max_tokens": n})["choices"][0]
            message, reason = joined_message(server.stream(CHATS, {**body, "max_tokens": n}))
            self.assertEqual(reason, choice["finish_reason"])
            self.assertEqual([call["function"] for call in message["tool_calls"]], [call["function"] for call in choice["message"].get("tool_calls", [])])
            self.assertEqual(message["content"] or "", choice["message"]["content"] or "")
            for call in choice["message"].get("tool_calls", [])[:1]:
                self.assertTrue(all_of_it.startswith(json.dumps(call["function"]["arguments"])[:-1]))

    def test_every_choice_has_its_own_calls(self):
        server = self.serve()
        body = {"messages": [MESSAGE], "tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False, "n": 3, "temperature": 1.5, "seed": 2}
        choices = server.post(CHATS, body)["choices"]
        ids = [call["id"] for choice in choices for call in choice["message"]["tool_calls"]]
        self.assertEqual(len(set(ids)), len(ids))
        for choice in choices:
            self.check(choice["message"])

    def test_an_answer_may_have_a_form_of_its_own_beside_calls(self):
        server = self.serve()
        body = {"messages": [MESSAGE], "tools": TOOLS, "guided_choice": ["yes", "no"], "max_tokens": 100}
        choice = server.post(CHATS, body)["choices"][0]
        self.assertTrue(choice["message"].get("tool_calls") or choice["message"]["content"] in ("yes", "no"), choice)
        self.check({"tool_calls": [], **choice["message"]})

    def test_conversations_with_calls_are_written_for_templates_that_know_none(self):
        server = self.serve(template="{% for m in messages %}[{{ m.role }}] {{ m.content }}\n{% endfor %}")
        call = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
        messages = [{"role": "system", "content": "Be brief."}, MESSAGE, {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "a", "content": "31"}]
        reply = server.post(CHATS, {"messages": messages, "tools": TOOLS[:1], "max_tokens": 1})
        written = ("[system] Be brief.\n\n# Tools\n\nYou may call these functions:\n<tools>\n" + json.dumps(TOOLS[0]) +
                   "\n</tools>\n\nTo call one, write:\n<tool_call>\n"
                   '{"name": <name>, "arguments": <object>}\n</tool_call>\n[user] ' + MESSAGE["content"] +
                   '\n[assistant] <tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>\n[user] <tool_response>\n31\n</tool_response>\n')
        self.assertEqual(reply["usage"]["prompt_tokens"], len(server.post("/tokenize", {"content": written, "add_special": True})["tokens"]))
        self.assertIn("system message", " ".join(reply["notices"]))

    def test_schemas_that_are_not_followed_are_named(self):
        server = self.serve()
        odd = {"type": "function", "function": {"name": "odd", "parameters": {"type": "object", "not": {}}}}
        custom = {"type": "custom", "custom": {"name": "c"}}
        reply = server.post(CHATS, {"messages": [MESSAGE], "tools": [odd, custom], "tool_choice": "required", "max_tokens": 60})
        notices = " ".join(reply["notices"])
        self.assertIn("the arguments of odd may be any object", notices)
        self.assertIn('those of type "custom" are left out', notices)

    def test_thoughts_are_apart_from_answers(self):
        server = self.serve()
        body = {"messages": [MESSAGE], "grammar": 'root ::= "<think>\\nHm, <b>.\\n</think>\\n\\nYes."'}
        message = server.post(CHATS, body)["choices"][0]["message"]
        self.assertEqual((message["reasoning_content"], message["content"]), ("Hm, <b>.", "Yes."))
        deltas = [choice["delta"] for chunk in server.stream(CHATS, body) for choice in chunk["choices"]]
        self.assertEqual("".join(delta.get("reasoning_content", "") for delta in deltas), "Hm, <b>.")
        self.assertEqual("".join(delta.get("content") or "" for delta in deltas), "Yes.")
        message = server.post(CHATS, {**body, "reasoning_format": "none"})["choices"][0]["message"]
        self.assertEqual(message["content"], "<think>\nHm, <b>.\n</think>\n\nYes.")
        self.assertNotIn("reasoning_content", message)

    def test_templates_may_begin_the_thought_and_know_the_effort(self):
        server = self.serve(template="{{ messages[0].content }} {{ reasoning_effort }} {{ enable_thinking }}\n<think>\n")
        body = {"messages": [MESSAGE], "max_tokens": 8, "guided_choice": ["yes", "no"]}
        for effort, written in (("high", "high "), ("none", " False")):
            reply = server.post(CHATS, {**body, "reasoning_effort": effort})
            message = reply["choices"][0]["message"]
            self.assertTrue(message["reasoning_content"])
            self.assertEqual(message["content"], "")
            self.assertEqual(reply["usage"]["prompt_tokens"], len(server.post("/tokenize", {
                "content": f"{MESSAGE['content']} {written}\n<think>", "add_special": True})["tokens"]))
        self.assertEqual(server.error(CHATS, {**body, "reasoning_effort": "much"})["param"], "reasoning_effort")

    def test_bad_tools_are_refused_by_name(self):
        server = self.serve()
        twice = [TOOLS[0], TOOLS[0]]
        for fields, param, why in (({"tools": [1]}, "tools[0]", "not an object"), ({"tools": [{"type": "function", "function": {}}]}, "tools[0]", "no name"),
                                   ({"tools": twice}, "tools[1]", "another tool has its name"),
                                   ({"tools": [{"type": "function", "function": {"name": "f", "parameters": [1]}}]}, "tools[0]", "not a JSON Schema"),
                                   ({"tools": TOOLS, "tool_choice": "sometimes"}, "tool_choice", "not a choice"), ({"tool_choice": "required"}, "tool_choice", "no tools"),
                                   ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "g"}}}, "tool_choice", "none of the tools"),
                                   ({"tools": TOOLS * 400}, "tools", "are more than 1024")):
            error = server.error(CHATS, {"messages": [MESSAGE], "max_tokens": 1, **fields})
            self.assertEqual(error["param"], param, error)
            self.assertIn(why, error["message"])


if __name__ == "__main__":
    main()
