#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OpenAI's responses: what they say is what chats say to the same messages; streams add up to whole replies, with calls and without; what agents send is
answered; and what cannot be done is refused by its name. The bundled model knows no tools, so calls are forced.

usage: responses_test.py FORETOKEN MODELS
"""
import json
import os
import re
import sys
import tempfile
import unittest

from server_testing import Server, together

PROGRAM, MODELS = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TARGET = os.path.join(MODELS, "tales-9m-q8_0.gguf")
RESPONSES, CHATS = "/v1/responses", "/v1/chat/completions"
QUESTION = "Is Rome warm?"
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}, "and": {"enum": ["C", "F"]}}, "required": ["city"]}
WEATHER = {"type": "function", "name": "weather", "description": "Of a city.", "parameters": PARAMETERS, "strict": True}
NOW = {"type": "function", "name": "now", "parameters": {"type": "object", "additionalProperties": False}}
FORCED = {"input": QUESTION, "tools": [WEATHER, NOW], "tool_choice": "required", "parallel_tool_calls": False, "temperature": 1}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "weather", "arguments": '{"city": "Rome"}', "status": "completed"}
OUTPUT = {"type": "function_call_output", "call_id": "a", "output": "31"}
CHAT_CALL = {"id": "a", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
CHAT_OUTPUT = {"role": "tool", "tool_call_id": "a", "content": "31"}
ASKED = {"role": "user", "content": QUESTION}


def text_of(response):
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


def without_ids(response):
    return [{key: value for key, value in item.items() if key not in ("id", "call_id")} for item in response["output"]]


class Responses(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(PROGRAM, "-m", TARGET, "-t", "1", "--repack-cache", "off", "-q", "--spec-type", "none")
        cls.addClassCleanup(cls.server.__exit__)

    def ask(self, **body):
        return self.server.post(RESPONSES, body)

    def events(self, **body):
        """Of a whole stream, after checks that hold for all of them."""
        status, headers, data = self.server.send("POST", RESPONSES, {**body, "stream": True})
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"), data)
        found = []
        for block in data.decode().split("\n\n")[:-1]:
            name, event = re.fullmatch(r"event: (\S+)\ndata: (\{.*\})", block).groups()
            found.append(json.loads(event))
            self.assertEqual(found[-1]["type"], name)
        self.assertEqual([event["sequence_number"] for event in found], list(range(len(found))))
        self.assertEqual([event["type"] for event in found[:2]], ["response.created", "response.in_progress"])
        for event in found[:2]:
            self.assertEqual((event["response"]["status"], event["response"]["output"]), ("in_progress", []))
        return found

    def gathered(self, events):
        """The last response of a stream, which its deltas and its other events must add up to."""
        items, ended = [], []
        for event in events[2:-1]:
            kind, at = event["type"].removeprefix("response."), event["output_index"]
            if kind == "output_item.added":
                self.assertEqual(at, len(items))
                self.assertEqual(len(ended), len(items), "an item begins before the last one has ended")
                items.append({"id": event["item"]["id"], "text": "", "item": event["item"]})
                self.assertEqual(event["item"]["status"], "in_progress")
                continue
            self.assertEqual(at, len(items) - 1)
            item = items[at]
            if kind == "output_item.done":
                self.assertEqual(event["item"]["id"], item["id"])
                ended.append(event["item"])
                said = event["item"]["arguments"] if event["item"]["type"] == "function_call" else event["item"]["content"][0]["text"]
                self.assertEqual(said, item["text"])
                continue
            self.assertEqual(event["item_id"], item["id"])
            if kind.endswith(".delta"):
                self.assertTrue(event["delta"])
                item["text"] += event["delta"]
            elif kind == "output_text.done":
                self.assertEqual((event["text"], event["content_index"]), (item["text"], 0))
            elif kind == "function_call_arguments.done":
                self.assertEqual(event["arguments"], item["text"])
            else:
                self.assertIn(kind, ("content_part.added", "content_part.done"))
                self.assertEqual(event["part"]["text"], item["text"])
        response = events[-1]["response"]
        self.assertEqual(events[-1]["type"], "response." + response["status"])
        self.assertEqual(response["output"], ended)
        self.assertEqual(response["id"], events[0]["response"]["id"])
        return response

    def same_as_chat(self, body, messages, **chat):
        """The response and the chat are of the same prompt and have the same text."""
        reply = self.server.post(CHATS, {"messages": messages, "max_tokens": 8, "temperature": 0, **chat})
        response = self.ask(max_output_tokens=8, temperature=0, **body)
        self.assertEqual(response["usage"]["input_tokens"], reply["usage"]["prompt_tokens"], body)
        self.assertEqual(text_of(response), reply["choices"][0]["message"]["content"] or "", body)

    def test_a_text_is_what_a_chat_says(self):
        self.same_as_chat({"input": QUESTION, "instructions": ""}, [ASKED])
        self.same_as_chat({"input": QUESTION, "instructions": "Be brief."}, [{"role": "system", "content": "Be brief."}, ASKED])
        parts = [{"type": "input_text", "text": "Is Rome "}, {"type": "input_text", "text": "warm?"}]
        said = {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
                "content": [{"type": "output_text", "text": "Yes.", "annotations": [], "logprobs": []}, {"type": "refusal", "refusal": " No."}]}
        self.same_as_chat({"input": [{"role": "developer", "content": "Be kind."}, {"type": "message", "role": "user", "content": parts}, said, ASKED]},
                          [{"role": "developer", "content": "Be kind."}, ASKED, {"role": "assistant", "content": "Yes. No."}, ASKED])

    def test_calls_and_their_results_are_those_of_chats(self):
        tools = {"tools": [{"type": "function", "function": {key: value for key, value in WEATHER.items() if key != "type"}}]}
        messages = [ASKED, {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}, CHAT_OUTPUT]
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "abc"}
        for output in ("31", [{"type": "input_text", "text": "3"}, {"type": "input_text", "text": "1"}]):
            self.same_as_chat({"input": [ASKED, reasoning, CALL, {**OUTPUT, "output": output}], "tools": [WEATHER]}, messages, **tools)
        # An answer's text and its calls are one message, and so are several calls.
        said = {"role": "assistant", "content": "I ask."}
        other = {**CALL, "call_id": "b"}
        messages = [ASKED, {**said, "tool_calls": [CHAT_CALL, {**CHAT_CALL, "id": "b"}]}, CHAT_OUTPUT, {**CHAT_OUTPUT, "tool_call_id": "b"}]
        self.same_as_chat({"input": [ASKED, said, CALL, reasoning, other, OUTPUT, {**OUTPUT, "call_id": "b"}]}, messages)

    def test_thoughts_of_earlier_turns_reach_the_template(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{% for m in messages %}{{ m.reasoning_content if m.reasoning_content }} {{ m.content }}\n{% endfor %}")
            file.flush()
            server = Server(PROGRAM, "-m", TARGET, "-t", "1", "--repack-cache", "off", "-q", "--spec-type", "none", "--chat-template-file", file.name)
            self.addCleanup(server.__exit__)

        def thought(words):
            return {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Why?"}], "encrypted_content": None,
                    "content": [{"type": "reasoning_text", "text": words}, {"type": "other", "text": "z"}, {"type": "reasoning_text", "text": 1}]}

        said, again = {"role": "assistant", "content": "I ask."}, {"role": "assistant", "content": "Yes."}
        chat = [ASKED, {**said, "reasoning_content": "Hm.\nA dragon?\nOr two?", "tool_calls": [CHAT_CALL]}, CHAT_OUTPUT,
                {**again, "reasoning_content": "So it is."}, ASKED]
        items = [ASKED, thought("Hm."), thought("A dragon?"), said, thought("Or two?"), CALL, OUTPUT, thought("So it is."), again, thought("lost"), ASKED]
        reply = server.post(CHATS, {"messages": chat, "max_tokens": 16, "temperature": 0})
        response = server.post(RESPONSES, {"input": items, "max_output_tokens": 16, "temperature": 0})
        self.assertEqual(response["usage"]["input_tokens"], reply["usage"]["prompt_tokens"])
        self.assertEqual(text_of(response), reply["choices"][0]["message"]["content"])

    def test_a_whole_response_has_what_clients_read(self):
        response = self.ask(input=QUESTION, instructions="Be brief.", max_output_tokens=6, temperature=0.5, metadata={"a": "b"}, model="tales-9m-q8_0")
        self.assertRegex(response["id"], "^resp_")
        self.assertEqual((response["object"], response["status"], response["incomplete_details"]), ("response", "incomplete", {"reason": "max_output_tokens"}))
        self.assertIsNone(response["error"])
        for key, value in {"instructions": "Be brief.", "max_output_tokens": 6, "temperature": 0.5, "metadata": {"a": "b"}, "tools": [], "tool_choice": "auto",
                           "top_p": None, "store": False, "parallel_tool_calls": True, "model": "tales-9m-q8_0"}.items():
            self.assertEqual(response[key], value, key)
        self.assertEqual(response["text"]["format"], {"type": "text"})
        usage = response["usage"]
        self.assertEqual((usage["output_tokens"], usage["total_tokens"]), (6, usage["input_tokens"] + 6))
        self.assertEqual(usage["output_tokens_details"], {"reasoning_tokens": 0})
        (item,) = response["output"]
        self.assertEqual((item["type"], item["role"], item["status"]), ("message", "assistant", "incomplete"))
        self.assertEqual([(part["type"], part["annotations"]) for part in item["content"]], [("output_text", [])])
        self.assertNotIn("notices", response)

    def test_streams_are_the_whole_response(self):
        for body in ({"input": QUESTION, "max_output_tokens": 9, "temperature": 0}, {"input": QUESTION, "seed": 4, "stop": ["."], "max_output_tokens": 80},
                     *({**FORCED, "seed": seed, "max_output_tokens": n} for seed, n in ((1, 80), (2, 80), (3, 11), (4, 3))),
                     {**FORCED, "parallel_tool_calls": True, "seed": 1, "max_output_tokens": 120},
                     {"input": QUESTION, "tools": [NOW], "max_output_tokens": 9, "seed": 2}):
            with self.subTest(body=body):
                whole, streamed = self.ask(**body), self.gathered(self.events(**body))
                self.assertEqual(without_ids(streamed), without_ids(whole))
                for key in set(whole) - {"id", "created_at", "output", "usage"}:
                    self.assertEqual(streamed[key], whole[key], key)
                self.assertEqual(set(streamed), set(whole))
                self.assertEqual(streamed["usage"]["total_tokens"], whole["usage"]["total_tokens"])

    def test_forced_calls_are_items(self):
        for choice, names in (("required", {"weather", "now"}), ({"type": "function", "name": "weather"}, {"weather"}),
                              ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "now"}]}, {"now"})):
            for seed in range(4):
                response = self.ask(**{**FORCED, "tool_choice": choice, "seed": seed})
                (call,) = response["output"]
                self.assertEqual((call["type"], response["status"], call["status"]), ("function_call", "completed", "completed"))
                self.assertIn(call["name"], names)
                self.assertIsInstance(json.loads(call["arguments"]), dict)
                self.assertEqual((response["tool_choice"], response["tools"]), (choice, FORCED["tools"]))
                self.assertNotEqual(call["id"], call["call_id"])
                # It can be sent back as it came.
                self.ask(input=[ASKED, call, {"type": "function_call_output", "call_id": call["call_id"], "output": "1"}], max_output_tokens=2)

    def test_the_form_of_a_text_is_followed(self):
        schema = {"type": "object", "properties": {"z": {"enum": [1, 2]}, "a": {"enum": [3]}}, "required": ["z", "a"]}
        form = {"format": {"type": "json_schema", "name": "pair", "schema": schema, "strict": True}, "verbosity": "medium"}
        response = self.ask(input=QUESTION, text=form)
        self.assertEqual(list(json.loads(text_of(response))), ["z", "a"])
        self.assertEqual(response["text"], form)
        text = text_of(self.ask(input=QUESTION, text={"format": {"type": "json_object"}}, max_output_tokens=60))
        self.assertTrue(text.lstrip().startswith("{"), text)

    def test_fields_without_effect_change_nothing(self):
        body = {"input": QUESTION, "max_output_tokens": 6, "temperature": 0}
        quiet = {"store": True, "metadata": {"a": "b"}, "client_metadata": {"a": "b"}, "prompt_cache_key": "k", "prompt_cache_retention": "24h",
                 "safety_identifier": "s", "user": "u", "service_tier": "auto", "truncation": "disabled", "background": False, "top_logprobs": 0,
                 "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"}, "previous_response_id": None, "conversation": None,
                 "text": {"format": {"type": "text"}, "verbosity": None}, "stream_options": None, "tools": [], "tool_choice": "auto", "max_tool_calls": 3}
        plain, with_fields = self.ask(**body), self.ask(**body, **quiet)
        self.assertEqual(without_ids(with_fields), without_ids(plain))
        self.assertNotIn("notices", with_fields)
        loud = {"text": {"verbosity": "low"}, "top_logprobs": 2, "truncation": "auto",
                "tools": [{"type": "web_search"}, {"type": "custom", "name": "c"}, {"type": "namespace", "name": "n", "tools": [NOW]}],
                "stream_options": {"include_obfuscation": True}, "include": ["message.output_text.logprobs"]}
        noticed = self.ask(**body, **loud)
        self.assertEqual(without_ids(noticed), without_ids(plain))
        for word in ("text.verbosity", "top_logprobs", "truncation", "web_search", "custom", "namespace",
                     "include_obfuscation", "include:"):
            self.assertIn(word, " ".join(noticed["notices"]))

    def test_what_agents_send_is_answered(self):
        # Every member that Codex sends, with short texts.
        body = {"model": "tales-9m-q8_0", "stream": True,
                "input": [{"type": "message", "id": "msg_1", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
                          {"type": "message", "id": "msg_2", "role": "developer",
                           "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
                          {"type": "message", "id": "msg_3", "role": "user", "content": [{"type": "input_text", "text": "say hi"}]}],
                "tools": [{"type": "function", "name": "run", "description": "d", "strict": False,
                           "parameters": {"type": "object", "properties": {"cmd": {"type": "string", "description": "d"}, "tty": {"type": "boolean"},
                                                                           "n": {"type": "number"},
                                                                           "rule": {"type": "array", "items": {"type": "string"}}},
                                          "required": ["cmd"], "additionalProperties": False}},
                          {"type": "function", "name": "plan", "description": "d", "strict": False,
                           "parameters": {"type": "object", "properties": {}, "required": [], "additionalProperties": False}},
                          {"type": "namespace", "name": "more", "description": "d", "tools": [NOW]}, {"type": "web_search", "external_web_access": False}],
                "tool_choice": "auto", "parallel_tool_calls": True, "reasoning": {"summary": "auto"}, "store": False,
                "include": ["reasoning.encrypted_content"], "prompt_cache_key": "UUID",
                "client_metadata": {"x-codex-installation-id": "UUID", "turn_id": "UUID", "x-codex-turn-metadata": "{}"}}
        response = self.gathered(self.events(**body))
        self.assertEqual(response["tools"], body["tools"])

    def test_thoughts_are_items_of_their_own(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write("{{ messages[0].content }} {{ reasoning_effort }}<think>")
            file.flush()
            server = Server(PROGRAM, "-m", TARGET, "-t", "1", "--repack-cache", "off", "-q", "--spec-type", "none", "--chat-template-file", file.name)
            self.addCleanup(server.__exit__)
        body = {"input": QUESTION, "max_output_tokens": 8, "reasoning": {"effort": "low"}, "temperature": 0}
        response = server.post(RESPONSES, body)
        item = response["output"][0]
        self.assertEqual((item["type"], item["content"][0]["type"]), ("reasoning", "reasoning_text"))
        self.assertTrue(item["content"][0]["text"])
        _, _, data = server.send("POST", RESPONSES, {**body, "stream": True})
        events = [json.loads(line.removeprefix("data: ")) for line in data.decode().splitlines() if line.startswith("data: ")]
        said = "".join(event["delta"] for event in events if event["type"] == "response.reasoning_text.delta")
        self.assertEqual(said, item["content"][0]["text"])
        self.assertEqual([event["text"] for event in events if event["type"] == "response.reasoning_text.done"], [said])

    def refused(self, body, param, why, status=400):
        got, _, data = self.server.send("POST", RESPONSES, body)
        error = json.loads(data)["error"]
        self.assertEqual((got, error["param"]), (status, param), error)
        self.assertRegex(error["message"], re.escape(why))

    def test_what_cannot_be_done_is_refused_by_name(self):
        image = [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": "data:image/png;base64,"}]
        for fields, param, why in (({"previous_response_id": "resp_1"}, "previous_response_id", "send the items of earlier turns"),
                                   ({"conversation": "conv_1"}, "conversation", "send the items of earlier turns"),
                                   ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].type", "none can be referred to; send it whole"),
                                   ({"input": [{"id": "msg_1"}]}, "input[0].type", "none can be referred to; send it whole"),
                                   ({"input": [{"role": "user", "content": image}]}, "input[0].content", '"input_image" is no text'),
                                   ({"input": [CALL, {**OUTPUT, "output": image}]}, "input[1].output", '"input_image" is no text'),
                                   ({"input": [ASKED, {"type": "computer_call"}]}, "input[1].type", '"computer_call" is not an item'),
                                   ({"input": [{"role": "tool", "content": "a"}]}, "input[0].role", '"tool" is not a role'),
                                   ({"input": [{"role": "user"}]}, "input[0].content", "missing"), ({"input": [1]}, "input[0]", "not an object"),
                                   ({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]}, "input[0].call_id", "missing"),
                                   ({"input": []}, "input", "neither a text nor a list"), ({"input": 1}, "input", "neither a text nor a list"),
                                   ({"input": None}, "input", "missing"), ({"input": "a " * 900}, "input", "do not fit a context of 512"),
                                   ({"background": True}, "background", "set it to false"), ({"prompt": {"id": "p"}}, "prompt", "no prompts are stored"),
                                   ({"max_output_tokens": 0}, "max_output_tokens", "is not in"), ({"max_tokens": 3}, "max_tokens", "use max_output_tokens"),
                                   ({"messages": [ASKED]}, "messages", "use input"), ({"temperature": 9}, "temperature", "is not in"),
                                   ({"n": 2}, "n", "no such field"), ({"instruction": "a"}, "instruction", "the nearest one is instructions"),
                                   ({"tools": [{"type": "function"}]}, "tools[0]", "no name"), ({"tools": {}}, "tools", "not a list"),
                                   ({"tools": [1]}, "tools[0]", "not an object"),
                                   ({"tool_choice": "required"}, "tool_choice", "no tools"), ({"truncation": "some"}, "truncation", "use disabled or auto"),
                                   ({"text": {"format": {"type": "xml"}}}, "text.format.type", "not known"),
                                   ({"text": {"format": {"type": "json_schema", "name": "a"}}}, "text.format.schema", "missing"),
                                   ({"text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "odd"}}}}, "text.format",
                                    "'odd' is not a type"),
                                   ({"text": {"form": {}}}, "text.form", "nearest one is format"), ({"metadata": 1}, "metadata", "not an object")):
            with self.subTest(fields=fields):
                self.refused({"input": QUESTION, "max_output_tokens": 1, **fields} if "max_tokens" not in fields else {"input": QUESTION, **fields}, param, why)
        self.refused({"input": QUESTION, "model": "other"}, "model", "there is no model", 404)
        self.refused(b'{"input": "a", "input": "b"}', None, "given twice")

    def test_a_stream_that_fails_says_so(self):
        with Server(PROGRAM, "-m", TARGET, "-t", "1", "--repack-cache", "off", "-q", "--spec-type", "none", "--parallel", "16", "--request-timeout-s", "1",
                    env={"FORETOKEN_ISA": "scalar"}) as server:
            body = {"input": QUESTION, "ignore_eos": True, "stream": True, "temperature": 0}
            begun = [data for status, _, data in together([lambda: server.send("POST", RESPONSES, body)] * 16) if status == 200]
        self.assertTrue(begun)
        for data in begun:
            *_, error, failed = [json.loads(block.split("\ndata: ")[1]) for block in data.decode().split("\n\n")[:-1]]
            self.assertEqual((error["type"], error["code"], error["param"]), ("error", "request_timeout", None))
            self.assertEqual((failed["type"], failed["response"]["status"]), ("response.failed", "failed"))
            self.assertEqual(failed["response"]["error"], {"code": "server_error", "message": error["message"]})
            self.assertEqual(failed["sequence_number"], error["sequence_number"] + 1)

    def test_texts_of_the_request_stay_on_one_line(self):
        body = json.dumps({"input": QUESTION, "tools": [NOW], "instructions": 'a "\\\n b', "stream": True, "max_output_tokens": 4}, indent=2).encode()
        status, _, data = self.server.send("POST", RESPONSES, body)
        self.assertEqual(status, 200)
        first = json.loads(data.decode().split("\n")[1].removeprefix("data: "))["response"]
        self.assertEqual((first["instructions"], first["tools"]), ('a "\\\n b', [NOW]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
