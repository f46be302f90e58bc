#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server with a network that has recurrent layers: the second turn of a conversation reads only what is new, and its text is that of a server
without checkpoints.

usage: recurrent_test.py FORETOKEN WRITE_TINY_MODEL
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from server_testing import Server

PROGRAM, WRITER = map(os.path.abspath, sys.argv[1:3])
FIRST = [3 + 7 * i % 290 for i in range(150)]
ANSWER, REST = 20, [3 + 11 * i % 290 for i in range(20)]
SECOND = FIRST + [ANSWER] * 60 + REST


class Recurrent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.model = pathlib.Path(cls.folder.name) / "recurrent.gguf"
        subprocess.run([WRITER, "--recurrent", cls.model], check=True)

    def turns(self, *flags):
        """The cached tokens and the text of each of three requests."""
        found = []
        with Server(PROGRAM, "-m", str(self.model), *flags) as server:
            body = {"max_tokens": 60, "temperature": 0, "ignore_eos": True}
            # The bias makes the answer a known one.
            for prompt, more in ((FIRST, {"logit_bias": {str(ANSWER): 100}}), (SECOND, {}), (SECOND, {"cache_prompt": False})):
                reply = server.completion(**body, **more, prompt=prompt)
                found.append((reply["usage"]["prompt_tokens_details"]["cached_tokens"], reply["choices"][0]["text"]))
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
        with Server(PROGRAM, "-m", str(self.model), "--spec-type", "none") as server:
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
            run = subprocess.run([PROGRAM, "serve", "-m", self.model, "--state-checkpoint-tokens", value], capture_output=True, text=True, timeout=900,
                                 check=False)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn("--state-checkpoint-tokens", run.stderr)

    def test_inspect_tells_what_checkpoints_take(self):
        run = subprocess.run([PROGRAM, "inspect", self.model], capture_output=True, text=True, timeout=900, check=True)
        self.assertIn("for checkpoints of states", run.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
