#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns of conversations with tools: what the template writes behind a call is read while the tool runs, so the next turn finds it in the cache; answers are
what they are without a cache; requests that come go first.

usage: turns_test.py FORETOKEN MODELS WRITER
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from server_testing import Server

PROGRAM, MODELS, WRITER = (os.path.abspath(path) for path in sys.argv[1:4])
CHATS = "/v1/chat/completions"
WAIT_SECONDS = 900  # ends a hang only
TEMPLATE = ("{{ tools | tojson if tools }}{% for m in messages %}<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}\n{% if m.role == 'tool' %}"
            "<tool_response>\n{{ m.content }}\n</tool_response>{% else %}{{ m.content or '' }}{% endif %}{% for c in m.tool_calls or [] %}<tool_call>\n"
            "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
PARAMETERS = {"type": "object", "properties": {"n": {"enum": [1, 2, 3]}}, "required": ["n"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "now", "parameters": PARAMETERS}}
ASK = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 100, "temperature": 1}


class Turns(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.template = pathlib.Path(folder.name) / "agents.jinja"
        cls.template.write_text(TEMPLATE, encoding="utf-8")
        recurrent = pathlib.Path(folder.name) / "recurrent.gguf"
        subprocess.run([WRITER, "--recurrent", recurrent], check=True)
        cls.models = {"dense": os.path.join(MODELS, "tales-9m-q8_0.gguf"), "recurrent": str(recurrent)}

    def serve(self, model, *flags):
        server = Server(PROGRAM, "-m", self.models[model], "-t", "1", "--repack-cache", "off", "-q", "--chat-template-file", str(self.template), *flags)
        self.addCleanup(server.__exit__)
        return server

    @staticmethod
    def count(server, messages):
        return len(server.post("/tokenize", {"messages": messages, "tools": [TOOL]})["tokens"])

    def wait_for_next_turn(self, server, more_than):
        end = time.monotonic() + WAIT_SECONDS
        while server.metric("next_turn_tokens_total") <= more_than:
            self.assertLess(time.monotonic(), end, "the next turn was never read")
            time.sleep(0.02)

    @staticmethod
    def ask(server, messages, **fields):
        reply = server.post(CHATS, {**ASK, "messages": messages, **fields})
        message = reply["choices"][0]["message"]
        calls = message["tool_calls"]
        more = [{"role": "assistant", "content": message["content"], "tool_calls": calls},
                *({"role": "tool", "tool_call_id": call["id"], "content": f"It is {call['function']['arguments']} o'clock."} for call in calls)]
        return reply, more

    def test_the_next_turn_is_read_while_the_tool_runs(self):
        for flags in (("--spec-type", "none"), ("--spec-type", "ngram", "--parallel", "3")):
            with self.subTest(flags=flags):
                server, fresh = self.serve("dense", *flags), self.serve("dense", "--spec-type", "none", "--prefix-cache", "off")
                messages, read = [{"role": "user", "content": "When?"}], 0
                for turn in range(2):
                    reply, more = self.ask(server, messages, seed=turn)
                    plain, _ = self.ask(fresh, messages, seed=turn)
                    self.assertEqual([call["function"] for call in reply["choices"][0]["message"]["tool_calls"]],
                                     [call["function"] for call in plain["choices"][0]["message"]["tool_calls"]])
                    if turn > 0:  # the template's text up to the result, at least
                        self.assertGreaterEqual(reply["usage"]["prompt_tokens_details"]["cached_tokens"], begun)
                    messages += more
                    self.wait_for_next_turn(server, read)
                    read = server.metric("next_turn_tokens_total")
                    begun = self.count(server, messages[:-1])
                    ended = sum(n for (name, _), n in server.metrics().items() if name == "request_success_total")
                    self.assertEqual(ended, turn + 1)  # it is no request

    def test_agents_behind_recurrent_layers_read_nothing_again(self):
        """Also where the template spells the answer in another way, and where conversations are more than sequences."""
        alone = self.serve("recurrent", "--spec-type", "none", "--prefix-cache", "off", "-c", "2048")
        for sequences in (4, 2):
            server = self.serve("recurrent", "--spec-type", "none", "-c", "2048", "--parallel", str(sequences))
            chats, begun = [[{"role": "user", "content": f"{agent}: when?"}] for agent in range(4)], [0] * 4
            for turn in range(3):
                read, replies = server.metric("next_turn_tokens_total"), [None] * 4

                def go_on(agent, to=replies, seed=turn, at=server, chats=chats):
                    to[agent] = self.ask(at, chats[agent], seed=10 * agent + seed, max_tokens=250)

                threads = [threading.Thread(target=go_on, args=(agent,)) for agent in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                for agent, (reply, more) in enumerate(replies):
                    self.assertEqual(reply["choices"][0]["finish_reason"], "tool_calls")
                    self.assertGreaterEqual(reply["usage"]["prompt_tokens_details"]["cached_tokens"], begun[agent], (sequences, turn, agent))
                    plain, _ = self.ask(alone, chats[agent], seed=10 * agent + turn, max_tokens=250)
                    self.assertEqual([call["function"] for call in reply["choices"][0]["message"]["tool_calls"]],
                                     [call["function"] for call in plain["choices"][0]["message"]["tool_calls"]])
                    chats[agent] += more
                    begun[agent] = self.count(server, chats[agent][:-1])
                self.wait_for_next_turn(server, read + sum(begun) - 1)  # all four

    def test_nothing_is_read_ahead_where_nothing_may_stay(self):
        server = self.serve("dense", "--spec-type", "none")
        messages = [{"role": "user", "content": "When?"}]
        reply, _ = self.ask(server, messages, seed=1, cache_prompt=False)
        self.assertEqual(reply["choices"][0]["finish_reason"], "tool_calls")
        cut = server.post(CHATS, {**ASK, "messages": messages, "max_tokens": 30})
        self.assertEqual(cut["choices"][0]["finish_reason"], "length")
        server.post(CHATS, {"messages": messages, "max_tokens": 8})
        time.sleep(1)  # more than it takes
        self.assertEqual(server.metric("next_turn_tokens_total"), 0)
        self.ask(server, messages, seed=1)
        self.wait_for_next_turn(server, 0)

    def test_agents_at_once_have_their_own_answers(self):
        server, alone = self.serve("dense", "--spec-type", "ngram", "--parallel", "4"), self.serve("dense", "--spec-type", "none", "--prefix-cache", "off")

        def session(where, agent, said):
            messages = [{"role": "user", "content": f"{agent}: when?"}]
            for turn in range(2):
                _, more = self.ask(where, messages, seed=10 * agent + turn)
                said.append([call["function"] for call in more[0]["tool_calls"]])
                messages += more

        together = [[] for _ in range(6)]
        threads = [threading.Thread(target=session, args=(server, agent, said)) for agent, said in enumerate(together)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for agent, said in enumerate(together):
            expected = []
            session(alone, agent, expected)
            self.assertEqual(said, expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
