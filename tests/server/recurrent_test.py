#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server with a network that has recurrent layers: the second turn of a conversation reads only what is new, and its text is that of a server
without checkpoints."""
from server_case import PROGRAM, ServerCase, main, new_folder, recurrent_model, run_program
from server_testing import Server, cached_tokens

FIRST = [3 + 7 * i % 290 for i in range(150)]
ANSWER, REST = 20, [3 + 11 * i % 290 for i in range(20)]
SECOND = FIRST + [ANSWER] * 60 + REST


class Recurrent(ServerCase):
    @classmethod
    def setUpClass(cls):
        cls.model = recurrent_model(new_folder(cls.addClassCleanup))

    def turns(self, *flags):
        """The cached tokens and the text of each of three requests."""
        found = []
        with Server(PROGRAM, "-m", self.model, *flags) as server:
            body = {"max_tokens": 60, "temperature": 0, "ignore_eos": True}
            # The bias makes the answer a known one.
            for prompt, more in ((FIRST, {"logit_bias": {str(ANSWER): 100}}), (SECOND, {}), (SECOND, {"cache_prompt": False})):
                reply = server.completion(**body, **more, prompt=prompt)
                found.append((cached_tokens(reply), reply["choices"][0]["text"]))
        return found

    def test_a_second_turn_reads_only_what_is_new(self):
        cached, texts = zip(*self.turns("--spec-type", "none"))
        self.assertEqual(cached, (0, 209, 0))  # all that were computed
        self.assertEqual(texts[1], texts[2])
        for flags in (("--spec-type", "none", "--state-checkpoint-tokens", "0"), ("--spec-type", "none", "--prefix-cache", "off")):
            without = self.turns(*flags)
            self.assertEqual([n for n, _ in without], [0, 0, 0])
            self.assertEqual([text for _, text in without], list(texts))
        drafted = self.turns("--spec-type", "ngram", "--parallel", "2")
        self.assertGreaterEqual(drafted[1][0], 209)
        self.assertEqual([text for _, text in drafted], list(texts))

    def test_drafts_of_a_client_leave_no_state_behind(self):
        body = {"prompt": FIRST, "max_tokens": 60, "temperature": 1, "seed": 5, "ignore_eos": True}
        with Server(PROGRAM, "-m", self.model, "--spec-type", "none") as server:
            def in_calls(drafts_behind):
                tokens, text, calls = [], "", 0
                while len(tokens) < 60:
                    reply = server.post("/v1/verify", {**body, "generated": tokens, "drafts": drafts_behind(len(tokens))})
                    tokens, text, calls = tokens + reply["tokens"], text + reply["text"], calls + 1
                return tokens, text, calls

            right, text, calls = in_calls(lambda n: [])
            self.assertEqual((calls, text), (60, server.completion(**body)["choices"][0]["text"]))
            self.assertEqual(in_calls(lambda n: right[n:n + 9]), (right, text, 6))
            self.assertEqual(in_calls(lambda n: right[n:n + 3] + [ANSWER] * 9)[:2], (right, text))

    def test_hostile_values_are_refused(self):
        for value in ("-1", "999999999999", "many", ""):
            run = run_program("serve", "-m", self.model, "--state-checkpoint-tokens", value)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("--state-checkpoint-tokens", run.stderr)

    def test_inspect_tells_what_checkpoints_take(self):
        self.assertIn("for checkpoints of states", run_program("inspect", self.model, check=True).stdout)


if __name__ == "__main__":
    main()
