#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one client's requests leave behind in `foretoken serve` (cached prompts, copies of recurrent states, texts that drafters learnt) serves
that client alone: its key, or its address where there are no keys. An attacker with another key reads nothing of an answer."""
from server_case import ONE_THREAD, ServerCase, main, new_folder, recurrent_model
from server_testing import cached_tokens, events

LEARNS = [("--spec-type", "suffix"), ("--spec-type", "ngram", "--ngram-keep", "on"), ("--spec-type", "portfolio", "--ngram-keep", "on")]
# Drafts as long as the drafter makes them, so that the attack needs few requests.
LONG = ("--num-speculative-tokens", "64", "--lookahead", "fixed")
PROMPT = "Once upon a time there was a secret that nobody should know, and it was this: " * 3
KNOWN = 4  # tokens of the answer that the attacker begins with
SEED = 4711
ANN, BOB = ({"Authorization": f"Bearer {key}"} for key in ("ann-key", "bob-key"))


class Sharing(ServerCase):
    FLAGS = (*ONE_THREAD, "--parallel", "2")

    def with_keys(self, *flags, **options):
        keys = new_folder(self.addCleanup) / "keys"
        keys.write_text("ann-key\nbob-key\n")
        keys.chmod(0o600)
        return self.serve(*flags, "--api-key-file", str(keys), **options)

    def secret(self, server, who, **fields):
        """The token ids of an answer that nobody else can compute, as only its client knows the seed. Answers in which words soon follow
        one another again tell the attack less, so it is always this one."""
        body = {"prompt": PROMPT, "max_tokens": 160, "temperature": 1.3, "seed": SEED, "ignore_eos": True, "speculative": {"trace": True}, **fields}
        return [token["id"] for event in self.traced(server, body, who) for token in event["tokens"]]

    def traced(self, server, body, who):
        status, _, data = server.send("POST", "/v1/completions", {**body, "stream": True}, headers=who)
        self.assertEqual(status, 200, data)
        return [chunk["foretoken"] for chunk in events(data) if "foretoken" in chunk and "tokens" in chunk["foretoken"]]

    def stolen(self, server, who, secret, kind="suffix", **fields):
        """How many tokens of the answer its drafts tell to someone who knows the first four: each request is forced to say the last known token
        again, and the draft behind it, which is rejected, says what followed it."""
        known = secret[:KNOWN]
        while len(known) < len(secret):
            body = {"prompt": known[:-1], "max_tokens": 66, "temperature": 0, "add_special_tokens": False, "ignore_eos": True,
                    "logit_bias": {str(known[-1]): 100}, "speculative": {"trace": True, "type": kind}, **fields}
            rounds = self.traced(server, body, who)
            first = next((r for r in rounds if r["drafted"] > 0), {"tokens": [], "rejected": []})
            drafts = [token["id"] for token in first["tokens"] if token["origin"] == "accepted"] + [token["id"] for token in first["rejected"]]
            right = 0
            while right < len(drafts) and drafts[right:right + 1] == secret[len(known) + right:len(known) + right + 1]:
                right += 1
            if right == 0:
                break
            known = secret[:len(known) + right]
        return len(known) - KNOWN

    def cached(self, server, who, prompt=PROMPT, source=None, **fields):
        return cached_tokens(server.post("/v1/completions", {"prompt": prompt, "max_tokens": 1, "temperature": 0, **fields}, headers=who, source=source))

    def test_drafts_tell_nothing_of_the_answers_of_another_key(self):
        for flags in LEARNS:
            with self.subTest(flags):
                server = self.with_keys(*flags, *LONG)
                secret = self.secret(server, ANN)
                self.assertEqual(len(secret), 160)
                # A request may choose one of the drafters that learnt.
                for kind in ("suffix", "ngram") if "portfolio" in flags else flags[1:2]:
                    self.assertEqual(self.stolen(server, BOB, secret, kind), 0)
                    self.assertGreater(self.stolen(server, ANN, secret, kind), 100)  # the control: the attack works on what is one's own

    def test_all_clients_share_where_the_operator_says_so(self):
        server = self.with_keys(*LEARNS[0], *LONG, "--share-prefixes", "all")
        secret = self.secret(server, ANN)
        self.assertGreater(self.stolen(server, BOB, secret), 100)
        self.assertGreater(self.cached(server, BOB), 0)

    def test_cached_tokens_tell_nothing_of_the_prompts_of_another_key(self):
        server = self.with_keys("--spec-type", "none")
        self.assertEqual(self.cached(server, ANN), 0)
        self.assertEqual(self.cached(server, BOB), 0)
        self.assertGreater(self.cached(server, ANN), 0)
        self.assertGreater(self.cached(server, BOB), 0)

    def test_a_salt_separates_the_requests_of_one_key(self):
        server = self.with_keys(*LEARNS[0], *LONG)
        secret = self.secret(server, ANN, cache_salt="first user")
        self.assertEqual(self.cached(server, ANN, cache_salt="second user"), 0)
        self.assertEqual(self.cached(server, ANN), 0)
        self.assertEqual(self.cached(server, BOB, cache_salt="first user"), 0)
        self.assertGreater(self.cached(server, ANN, cache_salt="first user"), 0)
        self.assertEqual(self.stolen(server, ANN, secret, cache_salt="second user"), 0)
        self.assertGreater(self.stolen(server, ANN, secret, cache_salt="first user"), 100)

    def test_a_request_may_leave_nothing_behind(self):
        server = self.with_keys(*LEARNS[0], *LONG)
        secret = self.secret(server, ANN, cache_prompt=False)
        self.assertEqual(self.cached(server, ANN), 0)
        self.assertEqual(self.stolen(server, ANN, secret), 0)

    def test_without_keys_each_address_has_its_own(self):
        server = self.serve("--spec-type", "none")

        self.assertEqual([self.cached(server, None, source=f"127.0.0.{i}") > 0 for i in (2, 3, 2)], [False, False, True])

    def test_copies_of_recurrent_states_belong_to_a_key(self):
        server = self.with_keys("--spec-type", "none", model=recurrent_model(new_folder(self.addCleanup)), common=())
        tokens = [3 + 7 * i % 290 for i in range(150)]
        self.assertEqual(self.cached(server, ANN, tokens), 0)
        self.assertEqual(self.cached(server, BOB, tokens + [20] * 9), 0)
        self.assertGreater(self.cached(server, ANN, tokens + [20] * 9), 0)

    def test_what_is_no_salt_is_refused(self):
        server = self.with_keys("--spec-type", "none")
        for salt in (5, ["a"], "s" * 257):
            error = server.error("/v1/completions", {"prompt": "a", "max_tokens": 1, "cache_salt": salt}, headers=ANN)
            self.assertEqual(error["param"], "cache_salt")


if __name__ == "__main__":
    main()
