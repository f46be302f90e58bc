#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Anthropic's messages: what they say is what chats say to the same messages; streams add up to whole replies, with tools, without and with thoughts;
what claude-code sends is answered; what cannot be done is refused by its name. The bundled model knows no tools, so calls are forced."""
import json

from server_case import ServerCase, main
from server_testing import named_events

MESSAGES, CHATS = "/v1/messages", "/v1/chat/completions"
ASKED = {"role": "user", "content": "Is Rome warm?"}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}, "and": {"enum": ["C", "F"]}}, "required": ["city"]}
WEATHER, NOW = {"name": "weather", "description": "d", "input_schema": SCHEMA}, {"name": "now", "input_schema": {"type": "object", "additionalProperties": False}}
FORCED = {"messages": [ASKED], "max_tokens": 150, "tools": [WEATHER, NOW], "tool_choice": {"type": "any", "disable_parallel_tool_use": True}, "temperature": 1}
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"z": 1, "city": "Rome"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "31"}
THOUGHTFUL = "{% for m in messages %}{{ m.reasoning_content if m.reasoning_content }} {{ m.content }}\n{% endfor %}"


def text(content, **more):
    return {"type": "text", "text": content, **more}


class Messages(ServerCase):
    def gathered(self, server, body):
        """The message that a stream's events make, as Anthropic's client puts it together."""
        message, arguments, last = None, "", ""
        for event in named_events(server.streamed(MESSAGES, body)):
            last = event["type"]
            if last == "message_start":
                message = event["message"]
            elif last == "content_block_start":
                self.assertEqual(event["index"], len(message["content"]))
                message["content"].append(event["content_block"])
                arguments = ""
            elif last == "content_block_delta":
                kind, said = message["content"][event["index"]], event["delta"]
                if said["type"] == "input_json_delta":
                    arguments += said["partial_json"]
                else:
                    name = said["type"].removesuffix("_delta")
                    kind[name] += said[name]
            elif last == "content_block_stop" and message["content"][-1]["type"] == "tool_use":
                try:
                    message["content"][-1]["input"] = json.loads(arguments)
                except ValueError:
                    message["content"][-1]["input"] = {}
            elif last == "message_delta":
                message.update(event["delta"])
                message["usage"] = event["usage"]
        self.assertEqual(last, "message_stop")
        return message

    def both(self, server, body):
        """The whole reply, which the stream must make, too."""
        whole = server.post(MESSAGES, body)
        streamed = self.gathered(server, body)
        for message in (whole, streamed):
            message.pop("id")
            message.pop("notices", None)
            message["usage"].pop("cache_read_input_tokens")
            message["usage"].pop("input_tokens")
            for block in message["content"]:
                block.pop("id", None)
        self.assertEqual(streamed, whole)
        return whole

    def same_as_chat(self, server, messages, chat, **fields):
        reply = server.post(MESSAGES, {"messages": messages, "max_tokens": 12, "temperature": 0, **fields})
        other = server.post(CHATS, {"messages": chat, "max_tokens": 12, "temperature": 0})
        self.assertEqual("".join(block["text"] for block in reply["content"]), other["choices"][0]["message"]["content"])
        counted = server.post(MESSAGES + "/count_tokens", {"messages": messages, **fields})["input_tokens"]
        self.assertEqual(counted, other["usage"]["prompt_tokens"])
        self.assertEqual(sum(reply["usage"][name] for name in ("input_tokens", "cache_read_input_tokens")), counted)

    def test_messages_say_what_chats_say(self):
        server = self.serve()
        chat = {"role": "user", "content": ASKED["content"]}
        self.same_as_chat(server, [ASKED], [chat])
        cached = {"cache_control": {"type": "ephemeral"}}
        self.same_as_chat(server, [{"role": "user", "content": [text("a", **cached), text("b")]}, {"role": "system", "content": [text("c")]}],
                          [{"role": "system", "content": "x\ny"}, {"role": "user", "content": "a\nb"}, {"role": "system", "content": "c"}],
                          system=[text("x", **cached), text("y")])

    def test_turns_with_tools_are_those_of_a_chat(self):
        server = self.serve()
        call = {"id": "toolu_1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(USE["input"])}}
        thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
        messages = [ASKED, {"role": "assistant", "content": [thought, text("I look."), USE]}, {"role": "user", "content": [RESULT, text("And now?")]}]
        chat = [ASKED, {"role": "assistant", "content": "I look.", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "toolu_1", "content": "31"},
                {"role": "user", "content": "And now?"}]
        self.same_as_chat(server, messages, chat)
        messages[2]["content"][0] = {**RESULT, "content": [text("31")], "is_error": False}
        self.same_as_chat(server, messages, chat)

    def test_forced_tools_are_used(self):
        server = self.serve()
        for seed in range(6):
            message = self.both(server, {**FORCED, "seed": seed})
            self.assertEqual((message["stop_reason"], len(message["content"])), ("tool_use", 1))
            use = message["content"][0]
            self.assertEqual(use["type"], "tool_use")
            self.assertIn(use["name"], ("weather", "now"))
            self.assertTrue(use["name"] == "now" or len(use["input"]["city"]) <= 9)
        exact = {"name": "exact", "input_schema": {"type": "object", "properties": {"n": {"const": 12345678901234567890123}}, "required": ["n"]}}
        _, _, data = server.send("POST", MESSAGES, {**FORCED, "tools": [exact], "tool_choice": {"type": "any", "disable_parallel_tool_use": None}})
        self.assertIn(b'"input": {"n":12345678901234567890123}', data)  # what a reader of numbers would change
        message = self.both(server, {**FORCED, "tool_choice": {"type": "tool", "name": "now"}, "temperature": 0})
        self.assertEqual([(block["name"], block["input"]) for block in message["content"]], [("now", {})])

    def test_answers_that_are_cut_say_so(self):
        server = self.serve()
        for n in range(1, 60, 5):
            message = self.both(server, {**FORCED, "max_tokens": n, "seed": 3})
            self.assertEqual(message["usage"]["output_tokens"] == n, message["stop_reason"] == "max_tokens")

    def test_thoughts_are_blocks(self):
        server = self.serve(template="{{ messages[0].content }} {{ reasoning_effort }} {{ enable_thinking }}<think>")
        message = self.both(server, {"messages": [ASKED], "max_tokens": 8, "temperature": 0})
        self.assertEqual([block["type"] for block in message["content"]], ["thinking"])
        self.assertTrue(message["content"][0]["thinking"])
        for fields, written in (({"output_config": {"effort": "high"}}, "high "), ({"thinking": {"type": "disabled"}}, " False")):
            tokens = server.post("/tokenize", {"content": f"{ASKED['content']} {written}<think>", "add_special": True})["tokens"]
            self.assertEqual(server.post(MESSAGES + "/count_tokens", {"messages": [ASKED], **fields})["input_tokens"], len(tokens))

    def test_thoughts_of_earlier_turns_reach_the_template(self):
        server = self.serve(template=THOUGHTFUL)
        thoughts = [{"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "redacted_thinking", "data": "x"},
                    {"type": "thinking", "thinking": "A dragon?", "signature": "s"}]
        self.same_as_chat(server, [ASKED, {"role": "assistant", "content": [*thoughts, text("Yes.")]}, ASKED],
                          [ASKED, {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm.\nA dragon?"}, ASKED])

    def test_claude_code_is_answered(self):
        server = self.serve()
        ephemeral = {"cache_control": {"type": "ephemeral"}}
        body = {"model": "tales-9m-q8_0", "messages": [{"role": "user", "content": [text("a"), text("b"), text("c", **ephemeral)]},
                                                       {"role": "system", "content": [text("d", **ephemeral)]}],
                "system": [text("e"), text("f", **ephemeral)],
                "tools": [{"name": "Bash", "description": "d", "input_schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
                                                                                 "properties": {"command": {"description": "d", "type": "string"},
                                                                                                "timeout": {"description": "d", "type": "number"}},
                                                                                 "required": ["command"], "additionalProperties": False}},
                          {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
                "metadata": {"user_id": "{}"}, "max_tokens": 32000, "thinking": {"type": "adaptive", "display": "omitted"},
                "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "output_config": {"effort": "high"}, "stream": True}
        status, _, data = server.send("POST", MESSAGES + "?beta=true", body)
        self.assertEqual(status, 200, data)
        self.assertIn(b"event: message_stop", data)

    def test_answers_may_have_a_schema(self):
        server = self.serve()
        schema = {"type": "object", "properties": {"b": {"enum": [1, 2]}, "a": {"enum": ["x"]}}, "required": ["b", "a"]}
        message = self.both(server, {"messages": [ASKED], "max_tokens": 60, "temperature": 0, "output_config": {"format": {"type": "json_schema", "schema": schema}}})
        self.assertEqual(list(json.loads(message["content"][0]["text"])), ["b", "a"])

    def test_keys_come_as_anthropics_clients_send_them(self):
        server = self.serve("--api-key", "secret")
        body = {"messages": [ASKED], "max_tokens": 1}
        status, _, data = server.send("POST", MESSAGES, body)
        self.assertEqual((status, json.loads(data)["error"]["type"]), (401, "authentication_error"))
        self.assertEqual(json.loads(data)["type"], "error")
        self.assertEqual(server.send("POST", MESSAGES, body, headers={"x-api-key": "secret", "anthropic-version": "2023-06-01"})[0], 200)
        self.assertIsInstance(server.error("/api/chat", {"messages": []}, 401), str)

    def test_what_cannot_be_done_is_refused_by_name(self):
        server = self.serve()
        image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}
        for fields, why in (({"max_tokens": None}, "max_tokens: it is missing"), ({"messages": []}, "messages: it is not a list"),
                            ({"messages": [1]}, "messages[0]: it is not an object"), ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].role"),
                            ({"messages": [{"role": "user", "content": [image]}]}, 'a block of type "image" cannot be read'),
                            ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"), ({"messages": [{"role": "user"}]}, "messages[0].content"),
                            ({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}, "no tool_use_id"),
                            ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": 1}]}]}, "a tool_use lacks its id"),
                            ({"system": [image]}, "system: a block of type"), ({"tools": 3}, "tools: it is not a list"), ({"tools": [3]}, "tools[0]"),
                            ({"tools": [{"name": "f", "input_schema": 3}]}, "not a JSON Schema"), ({"tool_choice": {"type": "some"}}, "tool_choice: its type"),
                            ({"tools": [NOW], "tool_choice": {"type": "tool", "name": "g"}}, "none of the tools"), ({"stop_sequences": 1}, "stop_sequences"),
                            ({"output_config": {"effort": "much"}}, "output_config.effort: 'much' is not an effort"), ({"top_k": -5}, "top_k"),
                            ({"output_config": {"format": {"type": "xml"}}}, "output_config.format"), ({"nothing": 1}, "nothing: no such field"),
                            ({"mcp_servers": [{"url": "u"}]}, "mcp_servers: nothing runs"), ({"thinking": 1}, "thinking")):
            status, _, data = server.send("POST", MESSAGES, {"messages": [ASKED], "max_tokens": 1, **fields})
            reply = json.loads(data)
            self.assertEqual((status, reply["type"], reply["error"]["type"]), (400, "error", "invalid_request_error"), (fields, reply))
            self.assertIn(why, reply["error"]["message"])
        self.assertEqual(server.error(MESSAGES, {"model": "other", "messages": [ASKED], "max_tokens": 1}, 404)["type"], "not_found_error")


if __name__ == "__main__":
    main()
