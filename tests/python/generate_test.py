#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests in Python give the tokens and the bits of the log-probabilities that the program prints; streams, results and conversations.

usage: generate_test.py LIBRARY PROGRAM MODELS [--without-numpy]
"""
import contextlib
import io
import json
import re
import subprocess

from python_testing import DRAFT, MODELS, PROGRAM, ROOT, SECONDS, TARGET, Gate, TestCase, foretoken, main, open_engine

PROMPTS = ("Once upon a time", "The dog \u201cMax\u201d")
COMMON = ["-t", "1", "-c", "256", "--repack-cache", "off", "-n", "40", "--logprobs", "2", "--json"]
DRAFTING = ["-md", DRAFT, "--lookahead", "fixed", "--num-speculative-tokens", "4"]


def of_program(prompt, temperature, flags):
    command = [PROGRAM, "generate", "-m", TARGET, "-p", prompt, "--temp", str(temperature), "-s", "7", *COMMON, *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS).stdout)


class GenerateTest(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plain, cls.drafting = open_engine(), open_engine(DRAFT)
        cls.addClassCleanup(cls.plain.close)
        cls.addClassCleanup(cls.drafting.close)

    def compare(self, engine, prompt, temperature, flags, **named):
        expected = of_program(prompt, temperature, flags)
        stream = engine.generate(prompt, max_new_tokens=40, temperature=temperature, seed=7, logprobs=2, **named)
        rounds = list(stream)
        done = stream.result()
        self.assertEqual(done.tokens, expected["token_ids"])
        self.assertEqual(done.prompt_tokens, expected["prompt_token_ids"])
        self.assertEqual([float(x) for x in done.logprobs], [row["logprob"] for row in expected["logprobs"]])
        self.assertEqual(done.top_logprobs, [[(best["id"], best["logprob"]) for best in row["top"]] for row in expected["logprobs"]])
        self.assertEqual((done.text, done.finish_reason, done.seed, done.lossless), (expected["text"], expected["finish_reason"], 7, True))
        self.assertEqual("".join(r.text for r in rounds), done.text)
        self.assertEqual([t for r in rounds for t in r.tokens], done.tokens)
        self.assertEqual([x for r in rounds for x in r.logprobs], [float(x) for x in done.logprobs])
        for name in ("rounds", "drafted", "accepted", "recovered", "bonus", "plain"):
            self.assertEqual(done.statistics[name], expected["speculation"][name], name)
        self.assertEqual(sum(r.origins.count(foretoken.Origin.ACCEPTED) for r in rounds), done.statistics["accepted"])
        self.assertEqual(sum(r.drafted for r in rounds), done.statistics["drafted"])
        return done

    def test_tokens_and_logprobs_are_those_of_the_program(self):
        for prompt in PROMPTS:
            for temperature in (0, 1):
                with self.subTest(prompt=prompt, temperature=temperature):
                    plain = self.compare(self.plain, prompt, temperature, ["--spec-type", "none"])
                    self.compare(self.drafting, prompt, temperature, DRAFTING)
                    matched = {"rejection_sampling_strategy": "sample-match"}  # a seed gives one text, drafted or not
                    drafted = self.compare(self.drafting, prompt, temperature, [*DRAFTING, "--verify", "sample-match"], **matched)
                    self.assertEqual(drafted.tokens, plain.tokens)
                    self.assertEqual([float(x) for x in drafted.logprobs], [float(x) for x in plain.logprobs])
                    self.assertGreater(drafted.statistics["accepted"], 0)
                    self.assertNotIn("acceptance_rate", plain.statistics)

    def test_a_prompt_is_text_or_tokens(self):
        tokens = self.plain.tokenize(PROMPTS[1])
        self.assertEqual(self.plain.generate(tokens, max_new_tokens=9, temperature=0).result().tokens,
                         self.plain.generate(PROMPTS[1], max_new_tokens=9, temperature=0).result().tokens)
        self.assertEqual(self.plain.detokenize(tokens).strip(), PROMPTS[1])
        pieces = b"".join(map(self.plain.token_bytes, self.plain.tokenize(PROMPTS[1], add_special=False)))
        self.assertEqual(pieces.decode().strip(), PROMPTS[1])

    def test_options_take_pythons_values(self):
        free = self.plain.generate(PROMPTS[0], max_new_tokens=8, temperature=0).result()
        banned = self.plain.generate(PROMPTS[0], max_new_tokens=8, temperature=0, logit_bias={free.tokens[0]: float("-inf")}).result()
        self.assertNotEqual(banned.tokens[0], free.tokens[0])
        self.assertNotIn("girl", self.plain.generate(PROMPTS[0], max_new_tokens=40, temperature=0, stop=["never", "girl"]).result().text)
        ended = self.plain.generate(PROMPTS[0], max_new_tokens=8, temperature=0, stop_token_ids=[free.tokens[2]]).result()
        self.assertEqual((ended.tokens[:2], ended.finish_reason), (free.tokens[:2], "stop"))
        schema = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": False}
        self.assertIn(json.loads(self.plain.generate(PROMPTS[0], json_schema=schema, max_new_tokens=60).result().text), ({"n": 1}, {"n": 2}))
        embedding = self.plain.generate(PROMPTS[0], embedding="mean", max_new_tokens=0).result().embedding
        self.assertEqual(len(embedding), self.plain.info()["embedding_size"])

    def test_a_dropped_stream_ends_its_request(self):
        for end in ("drop", "close", "cancel"):
            with self.subTest(end=end):
                gate = Gate(free_calls=2)
                stream = self.plain.generate(PROMPTS[0], max_new_tokens=200, ignore_eos=True, processors=[gate])
                for _ in stream:
                    break
                self.assertTrue(gate.reached.wait(SECONDS))
                if end == "drop":
                    del stream
                else:
                    getattr(stream, end)()
                gate.opened.set()
                if end == "cancel":
                    self.assertEqual(stream.result().finish_reason, "cancelled")
                self.plain.wait_idle(SECONDS)
                self.assertLess(gate.calls, 10)

    def test_next_has_a_time_limit(self):
        gate = Gate()
        with self.plain.generate(PROMPTS[0], max_new_tokens=3, processors=[gate]) as stream:
            self.assertIsNone(stream.next(timeout=0.01))
            self.assertFalse(stream.ended)
            self.fails(foretoken.Code.DEADLINE, "timeout_ms", "still run", self.plain.wait_idle, 0.01)
            gate.opened.set()
            self.assertEqual(len(stream.result().tokens), 3)
            self.assertTrue(stream.ended)

    def test_chats_have_openais_shapes(self):
        messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": [{"type": "text", "text": "Who?"}]}]
        named = {"chat_template": "chatml", "max_tokens": 12, "temperature": 0, "logprobs": True, "top_logprobs": 2}
        self.assertTrue(self.plain.chat_text(messages, chat_template="chatml").startswith("<|im_start|>system\nBe brief."))
        answer = self.plain.chat(messages, **named)
        choice = answer["choices"][0]
        prompt = self.plain.chat_tokens(messages, chat_template="chatml")
        same = self.plain.generate(prompt, max_new_tokens=12, temperature=0, logprobs=2).result()
        self.assertEqual((choice["message"]["content"], choice["finish_reason"]), (same.text, same.finish_reason))
        self.assertEqual([row["logprob"] for row in choice["logprobs"]["content"]], [float(x) for x in same.logprobs])
        self.assertEqual("".join(row["token"] for row in choice["logprobs"]["content"]).strip(), same.text.strip())
        self.assertEqual((answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]), (len(prompt), len(same.tokens)))
        free = self.plain.chat(messages, chat_template="chatml", ignore_eos=True)
        self.assertEqual((free["usage"]["total_tokens"], free["choices"][0]["finish_reason"]), (256, "length"))
        again = self.plain.chat(messages, chat_template="chatml", ignore_eos=True, seed=free["seed"])
        self.assertEqual(again["choices"], free["choices"])
        chunks = list(self.plain.chat(messages, stream=True, stream_options={"include_usage": True}, **named))
        self.assertEqual("".join(c["choices"][0]["delta"].get("content", "") for c in chunks[:-1]), same.text)
        self.assertEqual(chunks[-2]["choices"][0]["finish_reason"], same.finish_reason)
        self.assertEqual((chunks[-1]["choices"], chunks[-1]["usage"]["total_tokens"]), ([], answer["usage"]["total_tokens"]))

    def test_a_scorer_gives_the_logits_of_the_text(self):
        with foretoken.Scorer(TARGET, threads=1, context_size=256, repack_cache="off") as scorer:
            done = self.plain.generate(PROMPTS[0], max_new_tokens=8, temperature=0).result()
            rows = scorer.score(done.prompt_tokens + done.tokens[:-1])
            predicted = [max(range(len(row)), key=row.__getitem__) for row in rows[len(done.prompt_tokens) - 1:]]
            self.assertEqual(predicted, done.tokens)
            scorer.truncate(len(done.prompt_tokens) - 1)
            again = scorer.score([done.prompt_tokens[-1]])
            self.assertEqual((len(again), list(again[0])), (1, list(rows[len(done.prompt_tokens) - 1])))
            self.assertEqual(scorer.length(), len(done.prompt_tokens))

    def test_the_guide_begins_with_lines_that_work(self):
        lines = re.search(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.S).group(1)
        self.assertLessEqual(len([line for line in lines.splitlines() if line]), 5)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(lines.replace("target.gguf", TARGET).replace("draft.gguf", DRAFT), {})
        self.assertGreater(len(said.getvalue().split()), 20)

    def test_the_bundled_model_is_found(self):
        with foretoken.Engine(threads=1, context_size=64, repack_cache="off", speculative_method="none") as engine:
            self.assertEqual(engine.info()["model"], f"{MODELS}/tales-9m-q8_0.gguf")


if __name__ == "__main__":
    main()
