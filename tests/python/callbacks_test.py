#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processors and drafters in Python: they do what they say, change no text that they should not, and what they raise reaches the caller.

usage: callbacks_test.py LIBRARY PROGRAM MODELS [--without-numpy]
"""
import gc
import weakref

from python_testing import WITHOUT_NUMPY, TestCase, foretoken, main, need_numpy, open_engine

need_numpy()

PROMPT = "Once upon a time"


class Knows(foretoken.Drafter):
    """Drafts a text that it knows."""

    name = "knows"

    def __init__(self, tokens=()):
        self.tokens, self.calls, self.error, self.seen = list(tokens), [], None, []

    def begin(self, sequence, prompt):
        self.calls.append("begin")
        self.length = len(prompt)

    def propose(self, sequence, proposal):
        if self.error:
            raise self.error
        self.proposal = proposal
        at = len(proposal.text) - self.length
        return self.tokens[at:at + proposal.left]

    def observe(self, sequence, committed, drafted, accepted):
        self.seen += [int(token) for token in committed]

    def end(self, sequence):
        self.calls.append("end")


class Draws(foretoken.Drafter):
    """Draws its drafts from a distribution of two tokens."""

    name, distributions, vocabulary_size = "draws", True, 4096

    def propose(self, sequence, proposal):
        row = [0.0] * self.vocabulary_size
        row[261] = row[300] = 0.5
        while proposal.left > 0 and proposal.draw(row) is not None:
            assert proposal.text[-1] in (261, 300)


class CallbacksTest(TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plain = open_engine()
        cls.addClassCleanup(cls.plain.close)
        cls.text = cls.plain.generate(PROMPT, max_new_tokens=30, temperature=0).result().tokens

    def tokens(self, engine, **named):
        return engine.generate(PROMPT, **{"max_new_tokens": 30, "temperature": 0, **named}).result().tokens

    def test_processors_run_in_order_in_place_or_with_new_logits(self):
        first, kinds = self.text[0], set()

        def ban(text, logits):
            kinds.add((type(text).__module__, type(logits).__module__))
            logits[first] = float("-inf")

        def only_seven(text, logits):
            assert logits[first] == float("-inf")
            return [0.0 if token == 7 else float("-inf") for token in range(len(logits))]

        self.assertNotIn(first, self.tokens(self.plain, processors=[ban]))
        self.assertEqual(self.tokens(self.plain, processors=[ban, only_seven], ignore_eos=True), [7] * 30)
        self.assertEqual(kinds, {("array", "array")} if WITHOUT_NUMPY else {("numpy", "numpy")})
        self.assertEqual(self.tokens(self.plain), self.text)

    def test_what_a_processor_raises_reaches_the_caller(self):
        class Mine(Exception):
            pass

        def bad(text, logits):
            raise Mine("why")

        stream = self.plain.generate(PROMPT, processors=[bad])
        with self.assertRaises(Mine) as caught:
            list(stream)
        self.assertEqual(caught.exception.__cause__.code, foretoken.Code.CALLBACK)
        self.assertTrue(stream.ended)
        with self.assertRaises(Mine):
            stream.result()
        self.fails(foretoken.Code.INVALID_ARGUMENT, "logits", "not", self.tokens, self.plain, processors=[lambda text, logits: [1.0]])
        self.assertEqual(self.tokens(self.plain), self.text)
        with self.assertRaises(TypeError):
            self.plain.generate(PROMPT, processors=[5])

    def test_a_processor_may_not_wait_for_its_own_engine(self):
        def waits(text, logits):
            self.plain.generate(PROMPT).result()

        self.fails(foretoken.Code.INVALID_ARGUMENT, "engine", "another thread", self.tokens, self.plain, processors=[waits])

    def test_callbacks_are_let_go(self):
        def processor(text, logits):
            return None

        gone = weakref.ref(processor)
        self.tokens(self.plain, processors=[processor])
        del processor
        self.plain.wait_idle()
        gc.collect()
        self.assertIsNone(gone())

    def test_a_drafter_that_knows_the_text(self):
        drafter = Knows(self.text)
        with open_engine(drafter=drafter) as engine:
            self.assertIn("knows", engine.info()["methods"])
            done = engine.generate(PROMPT, max_new_tokens=30, temperature=0).result()
            self.assertEqual(done.tokens, self.text)
            self.assertGreater(done.statistics["accepted"], 20)
            self.assertEqual(done.statistics["accepted"], done.statistics["drafted"])
            self.assertEqual(drafter.seen[-5:], self.text[-5:])
            drafter.tokens = [(token + 1) % 4096 for token in self.text]
            done = engine.generate(PROMPT, max_new_tokens=30, temperature=0).result()
            self.assertEqual((done.tokens, done.statistics["accepted"]), (self.text, 0))
            self.assertEqual(drafter.calls, ["begin", "end"] * 2)
            self.fails(foretoken.Code.INVALID_ARGUMENT, "proposal", "has ended", drafter.proposal.push, 1)

    def test_a_drafter_with_distributions(self):
        with open_engine(drafter=Draws()) as engine:
            done = engine.generate(PROMPT, max_new_tokens=30, temperature=0).result()
            self.assertEqual(done.tokens, self.text)
            self.assertGreater(done.statistics["drafted"], 0)

    def test_what_a_drafter_raises_reaches_the_caller_and_no_later_text(self):
        drafter = Knows(self.text)
        drafter.error = KeyError("mine")
        with open_engine(drafter=drafter) as engine:
            with self.assertRaises(KeyError) as caught:
                engine.generate(PROMPT, max_new_tokens=30).result()
            self.assertIs(caught.exception, drafter.error)
            done = engine.generate(PROMPT, max_new_tokens=30, temperature=0).result()
            self.assertEqual((done.tokens, done.statistics["drafted"]), (self.text, 0))

    def test_sessions_draft_without_an_engine(self):
        with foretoken.Session("ngram", vocabulary_size=4096) as session:
            session.begin([5, 6, 7, 8, 5, 6])
            drafts = session.propose(2)
            self.assertEqual((drafts.tokens, drafts.distributions), ([7, 8], None))
            session.observe([7])
            self.assertEqual(session.propose(1).tokens, [8])
        self.fails(foretoken.Code.STOPPED, "session", "closed", session.propose, 1)
        with foretoken.Session(Draws(), vocabulary_size=4096) as session:
            session.begin([5])
            drafts = session.propose(3, distributions=True)
            self.assertEqual([float(row[token]) for row, token in zip(drafts.distributions, drafts.tokens)], [0.5] * 3)
            self.assertEqual([float(p) for p in drafts.probabilities], [0.5] * 3)
        failing = Knows()
        failing.error = OSError("mine")
        with foretoken.Session(failing, vocabulary_size=4096) as session:
            session.begin([5])
            with self.assertRaises(OSError):
                session.propose(3)


if __name__ == "__main__":
    main()
