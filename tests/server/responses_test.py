#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""OpenAI's responses: what they say is what chats say to the same messages; streams add up to whole replies, with calls and without; what agents send is
answered; what is stored is continued, read and deleted by its own client alone; and what cannot be done is refused by its name. The bundled model knows no
tools, so calls are forced."""
import json
import re

from server_case import SLOW, ServerCase, main
from server_testing import named_events, together

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


class Responses(ServerCase):
    SHARED = ()

    def ask(self, **body):
        return self.server.post(RESPONSES, body)

    def events(self, **body):
        """Of a whole stream, after checks that hold for all of them."""
        found = named_events(self.server.streamed(RESPONSES, body))
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

    def same_as_chat(self, body, messages, server=None, **chat):
        """The response and the chat are of the same prompt and have the same text."""
        reply = (server or self.server).post(CHATS, {"messages": messages, "max_tokens": 8, "temperature": 0, **chat})
        response = (server or self.server).post(RESPONSES, {"max_output_tokens": 8, "temperature": 0, **body})
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
        server = self.serve(template="{% for m in messages %}{{ m.reasoning_content if m.reasoning_content }} {{ m.content }}\n{% endfor %}")

        def thought(words):
            return {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Why?"}], "encrypted_content": None,
                    "content": [{"type": "reasoning_text", "text": words}, {"type": "other", "text": "z"}, {"type": "reasoning_text", "text": 1}]}

        said, again = {"role": "assistant", "content": "I ask."}, {"role": "assistant", "content": "Yes."}
        chat = [ASKED, {**said, "reasoning_content": "Hm.\nA dragon?\nOr two?", "tool_calls": [CHAT_CALL]}, CHAT_OUTPUT,
                {**again, "reasoning_content": "So it is."}, ASKED]
        items = [ASKED, thought("Hm."), thought("A dragon?"), said, thought("Or two?"), CALL, OUTPUT, thought("So it is."), again, thought("lost"), ASKED]
        self.same_as_chat({"input": items, "max_output_tokens": 16}, chat, server, max_tokens=16)

    def test_a_whole_response_has_what_clients_read(self):
        response = self.ask(input=QUESTION, instructions="Be brief.", max_output_tokens=6, temperature=0.5, metadata={"a": "b"}, model="tales-9m-q8_0")
        self.assertRegex(response["id"], "^resp_")
        self.assertEqual((response["object"], response["status"], response["incomplete_details"]), ("response", "incomplete", {"reason": "max_output_tokens"}))
        self.assertIsNone(response["error"])
        for key, value in {"instructions": "Be brief.", "max_output_tokens": 6, "temperature": 0.5, "metadata": {"a": "b"}, "tools": [], "tool_choice": "auto",
                           "top_p": None, "store": True, "previous_response_id": None, "parallel_tool_calls": True, "model": "tales-9m-q8_0"}.items():
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
        server = self.serve(template="{{ messages[0].content }} {{ reasoning_effort }}<think>")
        body = {"input": QUESTION, "max_output_tokens": 8, "reasoning": {"effort": "low"}, "temperature": 0}
        response = server.post(RESPONSES, body)
        item = response["output"][0]
        self.assertEqual((item["type"], item["content"][0]["type"]), ("reasoning", "reasoning_text"))
        self.assertTrue(item["content"][0]["text"])
        events = named_events(server.streamed(RESPONSES, body))
        said = "".join(event["delta"] for event in events if event["type"] == "response.reasoning_text.delta")
        self.assertEqual(said, item["content"][0]["text"])
        self.assertEqual([event["text"] for event in events if event["type"] == "response.reasoning_text.done"], [said])

    def refused(self, body, param, why, status=400):
        error = self.server.error(RESPONSES, body, status)
        self.assertEqual(error["param"], param, error)
        self.assertRegex(error["message"], re.escape(why))

    def test_what_cannot_be_done_is_refused_by_name(self):
        image = [{"type": "input_text", "text": "Look."}, {"type": "input_image", "image_url": "data:image/png;base64,"}]
        for fields, param, why in (({"previous_response_id": "resp_1"}, "previous_response_id", "send the items of earlier turns"),
                                   ({"previous_response_id": 1}, "previous_response_id", "is not a"), ({"store": "no"}, "store", "neither true nor false"),
                                   ({"conversation": "conv_1"}, "conversation", "use previous_response_id"),
                                   ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0].id", 'no item "msg_1" is kept for this client'),
                                   ({"input": [{"id": "msg_1_0"}]}, "input[0].id", "send it whole"),
                                   ({"input": [{"type": "item_reference"}]}, "input[0].id", "missing"),
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
        server = self.serve("--parallel", "16", "--request-timeout-s", "1", **SLOW)
        body = {"input": QUESTION, "ignore_eos": True, "stream": True, "temperature": 0}
        begun = [data for status, _, data in together([lambda: server.send("POST", RESPONSES, body)] * 16) if status == 200]
        self.assertTrue(begun)
        for data in begun:
            *_, error, failed = named_events(data)
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


class Stored(ServerCase):
    """What is kept of responses. Clients are keys."""
    SHARED = ("--api-key", "one", "--api-key", "two")

    def send(self, method, path, body=None, key="one", server=None):
        """(status, the JSON of the reply)"""
        status, _, data = (server or self.server).send(method, path, body, headers={"Authorization": f"Bearer {key}"})
        return status, json.loads(data)

    def ask(self, key="one", server=None, **body):
        status, reply = self.send("POST", RESPONSES, {"max_output_tokens": 6, "temperature": 0, **body}, key, server)
        self.assertEqual(status, 200, reply)
        return reply

    def refused(self, method, path, body=None, **options):
        """The error."""
        status, reply = self.send(method, path, body, **options)
        self.assertEqual(status, 400, reply)
        return reply["error"]

    def same(self, response, whole):
        """They are of the same prompt and have the same items."""
        self.assertEqual((response["usage"]["input_tokens"], without_ids(response)), (whole["usage"]["input_tokens"], without_ids(whole)))

    def get(self, path, **options):
        status, reply = self.send("GET", f"{RESPONSES}/{path}", **options)
        self.assertEqual(status, 200, reply)
        return reply

    def is_gone(self, response_id, key="one", server=None):
        """It reads as one that never was, whatever is done with it."""
        for method, path in (("GET", ""), ("GET", "/input_items"), ("POST", "/cancel"), ("DELETE", "")):
            status, reply = self.send(method, f"{RESPONSES}/{response_id}{path}", key=key, server=server)
            self.assertEqual((status, reply["error"]["code"], reply["error"]["param"]), (404, "response_not_found", "response_id"), reply)
            self.assertIn("create the response again", reply["error"]["message"])
        self.cannot_go_on(response_id, key, server)

    def cannot_go_on(self, response_id, key="one", server=None):
        error = self.refused("POST", RESPONSES, {"input": "And?", "previous_response_id": response_id}, key=key, server=server)
        self.assertEqual((error["code"], error["param"]), ("previous_response_not_found", "previous_response_id"), error)
        self.assertIn("send the items of earlier turns in input", error["message"])

    def conversation(self):
        """Three turns, of which the first is a call: the responses, and the input of each of them with all that was before it."""
        first = self.ask(input=[ASKED], tools=[WEATHER], tool_choice="required", parallel_tool_calls=False, temperature=1, seed=1, max_output_tokens=80,
                         instructions="Be brief.")
        (call,) = first["output"]
        self.assertEqual((call["type"], first["status"]), ("function_call", "completed"))
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "31 degrees"}
        second = self.ask(input=[result], previous_response_id=first["id"], tools=[WEATHER], tool_choice="none")
        third = self.ask(input="And tomorrow?", previous_response_id=second["id"], instructions="Be kind.")
        one, two = [ASKED], [ASKED, call, result]
        return [first, second, third], [one, two, [*two, *second["output"], {"role": "user", "content": "And tomorrow?"}]]

    def test_a_conversation_is_continued_by_ids_alone(self):
        responses, inputs = self.conversation()
        for response, before in zip(responses, [None, *(response["id"] for response in responses)]):
            self.assertEqual((response["store"], response["previous_response_id"]), (True, before))
        # Earlier instructions are not inherited.
        for response, sent, more in zip(responses[1:], inputs[1:], ({"tools": [WEATHER], "tool_choice": "none"}, {"instructions": "Be kind."})):
            self.same(response, self.ask(input=sent, store=False, **more))
        # A chain may branch, and go on where nothing more is kept.
        branch = self.ask(input="Why?", previous_response_id=responses[1]["id"], store=False)
        self.same(branch, self.ask(input=[*inputs[1], *responses[1]["output"], {"role": "user", "content": "Why?"}]))
        self.assertEqual((branch["store"], branch["previous_response_id"]), (False, responses[1]["id"]))
        self.is_gone(branch["id"])

    def test_thoughts_are_kept_and_listed(self):
        server = self.serve(template="{{ messages[0].content }}{{ messages | length }}<think>")
        first = self.ask(server=server, input=QUESTION)
        self.assertEqual(first["output"][0]["type"], "reasoning")
        second = self.ask(server=server, input="And?", previous_response_id=first["id"])
        items = self.get(f"{second['id']}/input_items?order=asc", server=server)["data"]
        self.assertEqual(items[1:-1], first["output"])

    def test_what_is_read_is_what_was_sent(self):
        responses, _ = self.conversation()
        for response in [*responses, self.ask(input=QUESTION, metadata={"a": "b"}, temperature=0.5, tools=[NOW], text={"verbosity": "low"})]:
            self.assertEqual(self.get(response["id"]), response)
        self.assertEqual(response["notices"], self.get(response["id"])["notices"])
        self.assertEqual(self.send("GET", "/responses/" + response["id"])[1], response)
        self.assertEqual(self.refused("GET", f"{RESPONSES}/{response['id']}?stream=true")["param"], "stream")

    def test_a_stream_is_stored_before_its_last_event(self):
        for _ in range(20):
            connection, stream = self.server.begin(RESPONSES, {"input": QUESTION, "stream": True, "max_output_tokens": 4}, {"Authorization": "Bearer one"})
            reply = None
            while reply is None:  # the connection is still open
                event = json.loads((stream.readline().decode().removeprefix("data: ") if stream.readline().startswith(b"event") else "") or "{}")
                stream.readline()
                self.assertTrue(event, "the stream ended early")
                if event["type"] in ("response.completed", "response.incomplete"):
                    reply = event["response"]
            self.assertEqual(self.get(reply["id"]), reply)
            self.ask(input="And?", previous_response_id=reply["id"], max_output_tokens=1)
            connection.close()

    def test_nothing_is_kept_that_was_not_wanted_or_did_not_end(self):
        response = self.ask(input=QUESTION, store=False)
        self.assertIs(response["store"], False)
        self.is_gone(response["id"])
        connection, stream = self.server.begin(RESPONSES, {"input": QUESTION, "stream": True, "ignore_eos": True}, {"Authorization": "Bearer one"})
        self.assertEqual(stream.readline(), b"event: response.created\n")
        created = json.loads(stream.readline().decode().removeprefix("data: "))["response"]
        self.assertIs(created["store"], True)
        self.cannot_go_on(created["id"])  # while it is made
        connection.sock.shutdown(2)
        connection.close()
        stream.close()
        self.is_gone(created["id"])

    def test_responses_of_others_are_as_if_they_never_were(self):
        response = self.ask(input=QUESTION)
        self.is_gone(response["id"], key="two")
        self.is_gone("resp_0123456789abcdef")
        _, foreign = self.send("GET", f"{RESPONSES}/{response['id']}", key="two")
        _, unknown = self.send("GET", f"{RESPONSES}/resp_0123456789abcdef", key="two")
        self.assertEqual(foreign["error"]["message"].replace(response["id"], "resp_0123456789abcdef"), unknown["error"]["message"])
        self.assertEqual(self.get(response["id"]), response)
        body = {"input": [{"type": "item_reference", "id": response["output"][0]["id"]}, ASKED]}
        self.assertEqual(self.refused("POST", RESPONSES, body, key="two")["code"], "item_not_found")

    def test_items_are_referred_to_by_their_ids(self):
        responses, _ = self.conversation()
        call, said = responses[0]["output"][0], responses[1]["output"][0]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "31 degrees"}
        sent = [ASKED, {"type": "item_reference", "id": call["id"]}, result, {"id": said["id"]}, ASKED]
        referred = self.ask(input=sent)
        self.same(referred, self.ask(input=[ASKED, call, result, said, ASKED]))
        items = self.get(f"{referred['id']}/input_items?order=asc")["data"]
        self.assertEqual((items[1], items[3]), (call, said))
        # What is referred to again is there twice, with another id.
        again = self.ask(input=[{"id": said["id"]}, ASKED], previous_response_id=referred["id"])
        self.same(again, self.ask(input=[ASKED, call, result, said, ASKED, *referred["output"], said, ASKED]))
        items = self.get(f"{again['id']}/input_items?order=asc")["data"]
        self.assertEqual((len(items), len({item["id"] for item in items}), items[6]), (8, 8, {**said, "id": items[6]["id"]}))

    def test_a_deleted_response_is_gone(self):
        responses, _ = self.conversation()
        status, reply = self.send("DELETE", f"{RESPONSES}/{responses[0]['id']}")
        self.assertEqual((status, reply), (200, {"id": responses[0]["id"], "object": "response", "deleted": True}))
        self.is_gone(responses[0]["id"])
        self.cannot_go_on(responses[2]["id"])  # without what it is about
        self.assertEqual(self.get(responses[2]["id"]), responses[2])
        status, reply = self.send("GET", f"{RESPONSES}/{responses[2]['id']}/input_items")
        self.assertEqual((status, reply["error"]["code"]), (404, "response_not_found"), reply)
        self.assertIn("continues a response that is not kept any more", reply["error"]["message"])

    def test_input_items_come_in_pages(self):
        responses, inputs = self.conversation()
        path = f"{responses[2]['id']}/input_items"
        items = self.get(path + "?order=asc")
        self.assertEqual((items["object"], items["has_more"]), ("list", False))
        self.assertEqual((items["first_id"], items["last_id"]), (items["data"][0]["id"], items["data"][-1]["id"]))
        self.assertEqual([item["type"] for item in items["data"]], ["message", "function_call", "function_call_output", "message", "message"])
        self.assertEqual(items["data"][0]["content"], [{"type": "input_text", "text": QUESTION}])
        self.assertEqual(items["data"][1], inputs[1][1])
        self.assertEqual(items["data"][2]["output"], "31 degrees")
        self.assertEqual(len({item["id"] for item in items["data"]}), 5)
        self.assertEqual(self.get(path)["data"], items["data"][::-1])
        for order in ("asc", "desc"):
            found, after = [], ""
            while True:
                page = self.get(f"{path}?limit=2&order={order}" + (f"&after={after}" if after else ""))
                found += page["data"]
                self.assertEqual((page["first_id"], page["last_id"]), (page["data"][0]["id"], page["data"][-1]["id"]))
                if not page["has_more"]:
                    break
                self.assertEqual(len(page["data"]), 2)
                after = page["last_id"].replace("_", "%5F")
            self.assertEqual(found, items["data"] if order == "asc" else items["data"][::-1])
        last = self.get(f"{path}?order=asc&after={items['last_id']}")
        self.assertEqual(last, {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False})
        for query, param in (("limit=0", "limit"), ("limit=101", "limit"), ("limit=a", "limit"), ("limit=", "limit"), ("limit=1e1", "limit"),
                             ("order=up", "order"), ("after=msg_1", "after"), ("after=%00%ff%zz", "after")):
            self.assertEqual(self.refused("GET", f"{RESPONSES}/{path}?{query}")["param"], param, query)
        # An id that is there already is replaced, so that pages end.
        twice = {"role": "user", "id": "msg_a", "content": QUESTION}
        again = self.ask(input=[twice, twice], previous_response_id=self.ask(input=[twice])["id"])
        items = self.get(f"{again['id']}/input_items")["data"]
        self.assertEqual((len(items), len({item["id"] for item in items}), items[-1]["id"]), (4, 4, "msg_a"))

    def test_nothing_runs_in_the_background(self):
        response = self.ask(input=QUESTION)
        connection = self.server.connect()
        connection.request("POST", f"{RESPONSES}/{response['id']}/cancel", headers={"Authorization": "Bearer one"})  # without a body and its type
        reply = connection.getresponse()
        self.assertEqual(reply.status, 400)
        self.assertIn("responses in the background are not supported", json.loads(reply.read())["error"]["message"])
        connection.close()
        for method, path, allowed in (("PUT", "", "GET, DELETE"), ("POST", "", "GET, DELETE"), ("GET", "/cancel", "POST"), ("DELETE", "/input_items", "GET")):
            status, headers, _ = self.server.send(method, f"{RESPONSES}/{response['id']}{path}", headers={"Authorization": "Bearer one"})
            self.assertEqual((status, headers["Allow"]), (405, allowed), (method, path))

    def test_conversations_of_many_clients_at_once(self):
        def converse(n):
            key, before, texts = ("one", "two")[n % 2], None, []
            for turn in range(4):
                reply = self.ask(key, input=f"{n} and {turn}?", previous_response_id=before, max_output_tokens=3)
                texts.append(f"{n} and {turn}?")
                before = reply["id"]
                self.assertEqual(self.get(before, key=key), reply)
                items = self.get(f"{before}/input_items?order=asc", key=key)["data"]
                self.assertEqual([item["content"][0]["text"] for item in items if item["role"] == "user"], texts)
            self.assertEqual(self.send("DELETE", f"{RESPONSES}/{before}", key=key)[0], 200)
            self.is_gone(before, key)
        together([lambda n=n: converse(n) for n in range(12)])

    def test_old_responses_make_room_and_a_flood_costs_others_little(self):
        server = self.serve("--api-key", "one", "--api-key", "two", "--max-memory", "400M")
        large = {"input": QUESTION, "max_output_tokens": 1, "metadata": {"a": "x" * 500_000}}
        small = self.ask("two", server, input=QUESTION)
        first = self.ask("one", server, **large)
        self.assertTrue(first["store"])
        later = []
        for _ in range(24):  # 12 MB: more than the store has here
            later.append(self.ask("one", server, **large)["id"])
            self.assertEqual(self.get(first["id"], server=server), first)  # it is used, so others go before it
        self.is_gone(later[0], server=server)
        self.get(later[-1], server=server)
        self.assertEqual(self.get(small["id"], key="two", server=server), small)
        # What is larger than a client's share is answered, and says that it is not kept.
        large["metadata"] = {"a": "x" * 2_000_000}
        response = self.ask("one", server, **large)
        self.assertEqual((response["store"], len(response["notices"])), (False, 1))
        self.assertIn("store: ", response["notices"][0])
        self.is_gone(response["id"], server=server)
        self.assertEqual(self.get(small["id"], key="two", server=server), small)

    def test_a_small_request_reads_no_more_than_it_may(self):
        server = self.serve("--max-memory", "400M")
        thought = {"type": "reasoning", "summary": [], "encrypted_content": "x" * 300_000}  # no tokens of a prompt
        first = self.ask(server=server, input=[thought, ASKED], max_output_tokens=1)
        second = self.ask(server=server, input=[thought, ASKED], max_output_tokens=1, previous_response_id=first["id"])
        references = [{"id": second["output"][0]["id"]}] * 6000
        for body, param in (({"input": "And?", "previous_response_id": second["id"]}, "previous_response_id"), ({"input": references}, "input")):
            error = self.refused("POST", RESPONSES, body, server=server)
            self.assertEqual((error["code"], error["param"]), ("context_length_exceeded", param), error)
            self.assertIn("more than a request can read", error["message"])
        self.ask(server=server, input="And?", previous_response_id=first["id"])


if __name__ == "__main__":
    main()
