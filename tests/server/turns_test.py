#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns of conversations with tools: what the template writes behind a call is read while the tool runs, so the next turn finds it in the cache; answers are
what they are without a cache; requests that come go first."""
import time

from server_case import ONE_THREAD, TARGET, ServerCase, main, new_folder, recurrent_model
from server_testing import cached_tokens, together, until

CHATS = "/v1/chat/completions"
TEMPLATE = ("{{ tools | tojson if tools }}{% for m in messages %}<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}\n{% if m.role == 'tool' %}"
            "<tool_response>\n{{ m.content }}\n</tool_response>{% else %}{{ m.content or '' }}{% endif %}{% for c in m.tool_calls or [] %}<tool_call>\n"
            "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
PARAMETERS = {"type": "object", "properties": {"n": {"enum": [1, 2, 3]}}, "required": ["n"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "now", "parameters": PARAMETERS}}
ASK = {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 100, "temperature": 1}


def functions(reply):
    """The calls of a reply, without their ids."""
    return [call["function"] for call in reply["choices"][0]["message"]["tool_calls"]]


class Turns(ServerCase):
    FLAGS = (*ONE_THREAD, "-q")

    @classmethod
    def setUpClass(cls):
        cls.models = {"dense": TARGET, "recurrent": recurrent_model(new_folder(cls.addClassCleanup))}

    def open(self, model, *flags):
        return self.serve(*flags, model=self.models[model], template=TEMPLATE)

    @staticmethod
    def count(server, messages):
        return len(server.post("/tokenize", {"messages": messages, "tools": [TOOL]})["tokens"])

    def wait_for_next_turn(self, server, more_than):
        until(lambda: server.metric("next_turn_tokens_total") > more_than, lambda: "the next turn was never read")

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
                server, fresh = self.open("dense", *flags), self.open("dense", "--spec-type", "none", "--prefix-cache", "off")
                messages, read = [{"role": "user", "content": "When?"}], 0
                for turn in range(2):
                    reply, more = self.ask(server, messages, seed=turn)
                    plain, _ = self.ask(fresh, messages, seed=turn)
                    self.assertEqual(functions(reply), functions(plain))
                    if turn > 0:  # the template's text up to the result, at least
                        self.assertGreaterEqual(cached_tokens(reply), begun)
                    messages += more
                    self.wait_for_next_turn(server, read)
                    read = server.metric("next_turn_tokens_total")
                    begun = self.count(server, messages[:-1])
                    ended = sum(n for (name, _), n in server.metrics().items() if name == "request_success_total")
                    self.assertEqual(ended, turn + 1)  # it is no request

    def test_agents_behind_recurrent_layers_read_nothing_again(self):
        """Also where the template spells the answer in another way, and where conversations are more than sequences."""
        alone = self.open("recurrent", "--spec-type", "none", "--prefix-cache", "off", "-c", "2048")
        for sequences in (4, 2):
            server = self.open("recurrent", "--spec-type", "none", "-c", "2048", "--parallel", str(sequences))
            chats, begun = [[{"role": "user", "content": f"{agent}: when?"}] for agent in range(4)], [0] * 4
            for turn in range(3):
                read = server.metric("next_turn_tokens_total")
                replies = together([lambda agent=agent: self.ask(server, chats[agent], seed=10 * agent + turn, max_tokens=250) for agent in range(4)])
                for agent, (reply, more) in enumerate(replies):
                    self.assertEqual(reply["choices"][0]["finish_reason"], "tool_calls")
                    self.assertGreaterEqual(cached_tokens(reply), begun[agent], (sequences, turn, agent))
                    plain, _ = self.ask(alone, chats[agent], seed=10 * agent + turn, max_tokens=250)
                    self.assertEqual(functions(reply), functions(plain))
                    chats[agent] += more
                    begun[agent] = self.count(server, chats[agent][:-1])
                self.wait_for_next_turn(server, read + sum(begun) - 1)  # all four

    def test_nothing_is_read_ahead_where_nothing_may_stay(self):
        server = self.open("dense", "--spec-type", "none")
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
        server, alone = self.open("dense", "--spec-type", "ngram", "--parallel", "4"), self.open("dense", "--spec-type", "none", "--prefix-cache", "off")

        def session(where, agent):
            messages, said = [{"role": "user", "content": f"{agent}: when?"}], []
            for turn in range(2):
                reply, more = self.ask(where, messages, seed=10 * agent + turn)
                said.append(functions(reply))
                messages += more
            return said

        for agent, said in enumerate(together([lambda agent=agent: session(server, agent) for agent in range(6)])):
            self.assertEqual(said, session(alone, agent))


if __name__ == "__main__":
    main()
