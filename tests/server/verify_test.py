#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""POST /v1/verify: what a client puts together from its calls is the text that one completion writes, whatever the client drafts; each call is one pass
beside those that read; what no client may ask for is refused."""
import random

from server_case import ONE_THREAD, PLAIN, ServerCase, main
from server_testing import cached_tokens, together

VERIFY, COMPLETIONS, CHATS = "/v1/verify", "/v1/completions", "/v1/chat/completions"
PROMPT = "Once upon a time there was a little girl who"
MESSAGES = [{"role": "user", "content": "Is Rome warm?"}]
LENGTH, LONGEST = 24, 7  # of an answer, and of a client's drafts


def drafts_of(kind, tokens, n, draw):
    """A client's drafts behind n of the tokens that will come."""
    right = tokens[n:n + LONGEST]
    if kind == "right":
        return right
    if kind == "wrong":
        return [(token + 1) % 1000 for token in right]
    if kind == "partly right":
        return right[:draw.randrange(1, LONGEST)] + [17, 18, 19]
    if kind == "random":
        return [draw.randrange(1000) for _ in range(draw.randrange(65))]
    return []


KINDS = ("right", "wrong", "partly right", "random", "empty")


class Verify(ServerCase):
    FLAGS, SHARED = (*PLAIN, "--parallel", "4"), ()

    def tokens_of(self, body):
        """The tokens of a completion: calls without drafts."""
        tokens, reply = [], {"finish_reason": None}
        while reply["finish_reason"] is None:
            reply = self.server.post(VERIFY, {**body, "drafts": [], "generated": tokens})
            self.assertEqual((reply["accepted"], len(reply["tokens"])), (0, 1))
            tokens = tokens + reply["tokens"]
        return tokens

    def in_calls(self, body, kind, tokens, seed, server=None):
        """(text, finish_reason, replies) of an answer, call by call."""
        draw, text, so_far, replies = random.Random(seed), "", [], []
        while True:
            drafts = drafts_of(kind, tokens, len(so_far), draw)
            reply = (server or self.server).post(VERIFY, {**body, "drafts": drafts, "generated": so_far})
            self.assertEqual(reply["tokens"][:reply["accepted"]], drafts[:reply["accepted"]])
            if reply["next"] is not None:
                self.assertEqual(reply["tokens"][reply["accepted"]:], [reply["next"]["id"]])
            self.assertEqual(reply["usage"]["completion_tokens"], len(reply["tokens"]))
            text, so_far = text + reply["text"], so_far + reply["tokens"]
            replies.append(reply)
            if reply["finish_reason"] is not None:
                return text, reply["finish_reason"], replies
            self.assertEqual(len(reply["tokens"]), reply["accepted"] + 1)

    def check(self, body, kinds=KINDS, seed=0):
        whole = self.server.post(COMPLETIONS, body)["choices"][0]
        tokens = self.tokens_of(body)
        for kind in kinds:
            with self.subTest(kind=kind, **body):
                text, reason, replies = self.in_calls(body, kind, tokens, seed)
                self.assertEqual((text, reason), (whole["text"], whole["finish_reason"]))
                if kind == "right":
                    self.assertEqual(len(replies), -(-len(tokens) // (LONGEST + 1)))
                if kind in ("wrong", "empty"):
                    self.assertEqual(len(replies), len(tokens))
        return tokens

    def test_the_text_is_that_of_one_completion(self):
        for seed in range(50):
            for temperature in (0, 0.7, 1):
                if temperature == 0 and seed > 4:
                    continue  # the same again
                kinds = KINDS if seed < 4 else (KINDS[seed % len(KINDS)], KINDS[(seed + 2) % len(KINDS)])
                self.check({"prompt": PROMPT, "max_tokens": LENGTH, "temperature": temperature, "seed": seed}, kinds, seed)

    def test_settings_that_read_the_text_see_all_of_it(self):
        body = {"prompt": PROMPT, "max_tokens": LENGTH, "temperature": 0.8, "seed": 3}
        text = self.server.post(COMPLETIONS, body)["choices"][0]["text"]
        for fields in ({"grammar": 'root ::= ([a-z]+ " ")+'}, {"regex": "[a-z ]{40}"}, {"frequency_penalty": 1.5, "presence_penalty": 0.5},
                       {"repetition_penalty": 1.5}, {"repeat_penalty": 1.3, "repeat_last_n": 8}, {"dry_multiplier": 2, "dry_allowed_length": 1},
                       {"logit_bias": {"17": 5, "300": -100}}, {"top_k": 5, "top_p": 0.8}, {"min_p": 0.1, "typical_p": 0.9, "eta": 0.01},
                       {"stop": [text[20:26]]}, {"stop": [text[-6:], "never"]}, {"stop_token_ids": list(range(200, 300)), "min_tokens": 9},
                       {"min_tokens": 20, "stop": ["."]}, {"skip_special_tokens": False}, {"add_special_tokens": False}):
            for seed in (3, 4):
                self.check({**body, **fields, "seed": seed}, seed=seed)

    def test_characters_of_several_tokens_are_whole(self):
        grammar = "root ::= [\U0001f600-\U0001f64f]+"
        tokens = self.check({"prompt": PROMPT, "max_tokens": 19, "temperature": 1, "seed": 2, "grammar": grammar})
        reply = self.server.post(VERIFY, {"prompt": PROMPT, "max_tokens": 19, "temperature": 1, "seed": 2, "grammar": grammar, "drafts": []})
        self.assertEqual((reply["tokens"], reply["text"]), (tokens[:1], ""))

    def test_prompts_of_tokens_and_messages(self):
        tokens = self.server.post("/tokenize", {"content": PROMPT})["tokens"]
        self.check({"prompt": tokens, "max_tokens": 12, "temperature": 1, "seed": 5})
        body = {"messages": MESSAGES, "max_tokens": 12, "temperature": 1, "seed": 5}
        whole = self.server.post(CHATS, body)["choices"][0]
        for kind in KINDS:
            text, reason, _ = self.in_calls(body, kind, self.tokens_of(body), 1)
            self.assertEqual((text, reason), (whole["message"]["content"], whole["finish_reason"]))

    def test_drafts_may_be_a_text(self):
        body = {"prompt": PROMPT, "max_tokens": LENGTH, "temperature": 0}
        text = self.server.post(COMPLETIONS, body)["choices"][0]["text"]
        reply = self.server.post(VERIFY, {**body, "drafts": text[:30]})
        self.assertGreater(reply["accepted"], 4)
        self.assertTrue(text.startswith(reply["text"]))
        self.assertEqual(self.server.post(VERIFY, {**body, "drafts": ""})["accepted"], 0)

    def test_a_seed_of_the_server_goes_on(self):
        body = {"prompt": PROMPT, "max_tokens": LENGTH, "temperature": 1}
        first = self.server.post(VERIFY, {**body, "drafts": [1, 2]})
        body["seed"] = first["seed"]
        second = self.server.post(VERIFY, {**body, "drafts": [], "generated": first["tokens"]})
        self.assertTrue(self.server.post(COMPLETIONS, body)["choices"][0]["text"].startswith(first["text"] + second["text"]))

    def test_each_call_is_one_pass_and_reads_only_what_no_block_has(self):
        server = self.serve("--max-queue", "1")
        body = {"prompt": PROMPT * 6, "max_tokens": 120, "temperature": 1, "seed": 1, "ignore_eos": True}
        tokens, reply = [], {"finish_reason": None}
        while reply["finish_reason"] is None:  # what will come
            reply = self.server.post(VERIFY, {**body, "drafts": [], "generated": tokens})
            tokens += reply["tokens"]
        n_prompt = len(self.server.post("/tokenize", {"content": body["prompt"], "add_special": True})["tokens"])
        so_far, again = [], []
        while len(so_far) < 120:
            before = self.passes(server)
            reply = server.post(VERIFY, {**body, "drafts": tokens[len(so_far):len(so_far) + LONGEST], "generated": so_far})
            if so_far:  # the prompt itself is read in several
                self.assertEqual(self.passes(server) - before, 1)
            n = n_prompt + len(so_far)
            self.assertEqual(reply["usage"]["prompt_tokens"], n)
            cached = cached_tokens(reply)
            self.assertEqual(cached, n - 1 if so_far else 0)  # all but the newest token
            self.assertEqual(reply["timings"]["prompt_n"], n - cached)
            again.append(n - cached)
            so_far += reply["tokens"]
        self.assertEqual(so_far, tokens)
        self.assertEqual(max(again[1:]), 1)
        self.assertEqual(server.metric("spec_decode_num_drafts_total"), len(again))

    @staticmethod
    def passes(server):
        return sum(value for (name, _), value in server.metrics().items() if name == "spec_decode_verify_passes_total")

    def test_calls_beside_other_requests(self):
        bodies = [{"prompt": PROMPT, "max_tokens": LENGTH, "temperature": 1, "seed": seed} for seed in range(8)]
        wholes = [self.server.post(COMPLETIONS, body)["choices"][0]["text"] for body in bodies]
        tokens = [self.tokens_of(body) for body in bodies]
        calls = [lambda body=body, known=known: self.in_calls(body, "partly right", known, 1)[0] for body, known in zip(bodies, tokens)]
        others = [lambda body=body: self.server.post(COMPLETIONS, body)["choices"][0]["text"] for body in bodies]
        self.assertEqual(together(calls + others), wholes + wholes)

    def test_drafts_beside_drafters_of_the_server(self):
        for flags in (("--spec-type", "ngram"), ("--spec-type", "ngram", "--rejection-sampling-strategy", "typical-acceptance")):
            server = self.serve("-q", *flags, common=ONE_THREAD)
            body = {"prompt": PROMPT, "max_tokens": LENGTH, "temperature": 1, "seed": 1}
            whole = self.server.post(COMPLETIONS, body)["choices"][0]["text"]
            text, _, replies = self.in_calls(body, "partly right", self.tokens_of(body), 1, server)
            self.assertEqual(text, whole)
            for reply in replies:
                self.assertEqual((reply["speculation"]["strategy"], reply["speculation"]["lossless"]), ("sample-match", True))

    def test_logprobs_are_those_of_the_completion(self):
        body = {"prompt": PROMPT, "max_tokens": 12, "temperature": 1, "seed": 1, "logprobs": 2}
        whole = self.server.post(COMPLETIONS, body)["choices"][0]["logprobs"]
        _, _, replies = self.in_calls(body, "partly right", self.tokens_of(body), 1)
        for name in ("tokens", "token_logprobs", "top_logprobs"):
            self.assertEqual([entry for reply in replies for entry in reply["logprobs"][name]], whole[name])
        self.assertIsNone(self.server.post(VERIFY, {"prompt": "a", "drafts": []})["logprobs"])

    def test_salts_divide_the_cache(self):
        body = {"prompt": PROMPT * 4, "max_tokens": 4, "temperature": 0, "drafts": []}

        def cached(**fields):
            return cached_tokens(self.server.post(VERIFY, {**body, **fields}))

        cached(cache_salt="ann")
        self.assertGreater(cached(cache_salt="ann"), 0)
        self.assertEqual((cached(cache_salt="bob"), cached(cache_salt="cat", cache_prompt=False)), (0, 0))
        self.assertEqual(cached(cache_salt="cat"), 0)  # nothing of the last one stayed
        server = self.serve("--api-key", "one", "--api-key", "two")
        counts = [cached_tokens(server.post(VERIFY, body, headers={"Authorization": "Bearer " + key})) for key in ("one", "two", "one", "two")]
        self.assertEqual(counts[:2], [0, 0])
        self.assertTrue(all(counts[2:]))

    def refused(self, **fields):
        error = self.server.error(VERIFY, {"prompt": PROMPT, "max_tokens": 8, "seed": 1, "drafts": [], **fields})
        return error["param"], error["message"]

    def test_what_cannot_be_verified_is_refused(self):
        vocabulary = self.server.get("/v1/models")["data"][0]["meta"]["vocabulary_size"]
        for drafts in (None, 3, {}, True, [vocabulary], [-1], ["a"], [1.5], [None], [2**40], list(range(65)), "a b c d " * 40, [[1]]):
            param, message = self.refused(drafts=drafts)
            self.assertEqual(param, "drafts", message)
        for generated in (3, "abc", {}, [vocabulary], [-1], ["a"], [1] * 8, [17] * 100000):
            self.assertEqual(self.refused(generated=generated)[0], "generated")
        self.assertIn("context", self.refused(generated=[17] * 600, max_tokens=1000)[1])
        for field, value in (("n", 2), ("best_of", 2), ("stream", True), ("echo", True)):
            self.assertEqual(self.refused(**{field: value})[0], field)
        self.assertEqual(self.refused(prompt=["a", "b"])[0], "prompt")
        self.assertEqual(self.refused(messages=MESSAGES)[0], "messages")
        self.assertEqual(self.refused(prompt=None)[0], "prompt")
        tool = {"type": "function", "function": {"name": "f"}}
        self.assertEqual(self.refused(prompt=None, messages=MESSAGES, tools=[tool])[0], "tools")
        self.assertEqual(self.refused(speculative={"strategy": "residual"})[0], "speculative.strategy")
        self.assertEqual(self.refused(seed=None, generated=[17])[0], "seed")
        self.assertEqual(self.refused(draftss=[])[0], "draftss")
        self.assertIn("token 2 of 2", self.refused(generated=[17, 18], stop_token_ids=[18])[1])
        self.assertIn("grammar", self.refused(generated=self.server.post("/tokenize", {"content": "ab"})["tokens"], grammar='root ::= "x"+')[1])
        for drafts in ([], [17], [17] * 64):  # more than the text may have
            reply = self.server.post(VERIFY, {"prompt": PROMPT, "max_tokens": 1, "temperature": 0, "drafts": drafts})
            self.assertEqual((len(reply["tokens"]), reply["finish_reason"]), (1, "length"))


if __name__ == "__main__":
    main()
