#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The kit's statistics against closed forms and against draws by the computer, and what it reads from replies. No server is needed."""
import collections
import math
import random
import unittest

import kit_testing  # noqa: F401  (the kit's folder)
from speculation_kit import chi_square, exactness, likeliest, prompts, speed
from speculation_kit.errors import KitError
from speculation_kit.reply import Asked, Reply, StreamedReply

CONTEXTS = [[.5, .2, .1, .1, .05, .03, .02], [.4, .2, .1, .1, .1, .05, .05], [.9, .05, .03, .02], [.25] + [.025] * 30]
LEVEL = 0.01


def texts(generator, n, share=0.0):
    """n texts of three tokens for each context; in that share of the draws the likeliest token stands."""
    found = []
    for p in CONTEXTS:
        columns = [[0 if generator.random() < share else x for x in generator.choices(range(len(p)), p, k=n)] for _ in range(3)]
        found.append(list(zip(*columns)))
    return found


def first_tokens(sides):
    return [tuple(collections.Counter(text[0] for text in side) for side in pair) for pair in sides]


# Each test as (compare, detectable) of the texts of two servers.
TESTS = [(likeliest.compare, likeliest.detectable),
         (lambda sides: chi_square.compare(first_tokens(sides)), lambda sides, level: chi_square.detectable(first_tokens(sides), level))]


class StatisticsTest(unittest.TestCase):
    def test_the_tail_is_chi_squares(self):
        for x in (0.01, 0.5, 2.0, 9.0, 40.0, 200.0):
            self.assertAlmostEqual(chi_square.tail(x, 1), math.erfc(math.sqrt(x / 2)), delta=1e-12)
            for degrees in (2, 4, 10, 60):  # an even number: a sum of Poisson's probabilities
                poisson = sum(math.exp(j * math.log(x / 2) - x / 2 - math.lgamma(j + 1)) for j in range(degrees // 2))
                self.assertAlmostEqual(chi_square.tail(x, degrees) / poisson, 1, delta=1e-9, msg=(x, degrees))
        self.assertEqual(chi_square.tail(0, 3), 1)

    def test_power_is_that_of_a_shifted_normal(self):
        critical = chi_square.critical_value(1, LEVEL)
        normal = lambda z: math.erfc(-z / math.sqrt(2)) / 2
        self.assertAlmostEqual(chi_square.power(0.0, 1, critical), LEVEL, delta=1e-9)
        for shift in (0.5, 2.0, 4.0):
            edge = math.sqrt(critical)
            self.assertAlmostEqual(chi_square.power(shift ** 2, 1, critical), normal(shift - edge) + normal(-shift - edge), delta=1e-9)

    def test_equal_distributions_rarely_fail_and_faults_are_found_as_promised(self):
        generator, n = random.Random(34), 200
        pair = lambda share: list(zip(texts(generator, n), texts(generator, n, share)))
        for compare, detectable in TESTS:
            alarms = sum(compare(pair(0)).p < LEVEL for _ in range(300))
            self.assertLess(alarms, 11)  # 3 are expected; 11 or more have a probability of 0.0003
            share = detectable(pair(0), LEVEL)
            self.assertTrue(0.02 < share < 0.5, share)
            missed = sum(compare(pair(share)).p >= LEVEL for _ in range(100))
            self.assertLess(missed, 15, share)  # 5 are expected; 15 or more have a probability of 0.0002

    def test_one_outcome_compares_nothing(self):
        self.assertEqual(chi_square.compare([({1: 50}, {1: 50})]), chi_square.NOTHING)
        self.assertEqual(chi_square.compare([({1: 5}, {2: 5})]).degrees, 0)  # too few for two cells
        self.assertEqual(likeliest.compare([([(1,)] * 5, [(1,)] * 5)]), chi_square.NOTHING)

    def test_the_interval_holds_the_median(self):
        self.assertIsNone(speed.median_interval([1, 2, 3, 4, 5]))
        self.assertEqual(speed.median_interval([6, 1, 5, 2, 4, 3]), (1, 6))
        self.assertEqual(speed.median_interval(range(1, 21)), (6, 15))  # the sign test's bounds for 20
        generator = random.Random(7)
        held = 0
        for _ in range(1000):
            low, high = speed.median_interval([generator.expovariate(1) for _ in range(15)])
            held += low <= math.log(2) <= high
        self.assertGreater(held, 935)  # 965 are expected


def completion(tokens, numbers, tops=None, **more):
    value = {"text": "".join(tokens), "finish_reason": "length", "logprobs": {"tokens": tokens, "token_logprobs": numbers, "top_logprobs": tops}, **more}
    return Reply.of({"choices": [value]}, Asked("completions", "p", 0.0, None, 8), "url")


class RepliesTest(unittest.TestCase):
    def difference(self, other, tolerance=0.01):
        plain = completion(["a", "b", "c"], [-1.0, -2.0, -0.5], [{"a": -1.0}, {"b": -2.0, "x": -2.25}, {}])
        return exactness.first_difference("p", plain, other, tolerance)

    def test_the_first_difference_is_found(self):
        self.assertIsNone(self.difference(completion(["a", "b", "c"], [-1.0, -2.005, -0.5])))
        found = self.difference(completion(["a", "b", "c"], [-1.0, -2.005, -0.5]), 0)
        self.assertEqual((found.what, found.position), ("log-probability", 1))
        found = self.difference(completion(["a", "x", "c"], [-1.0, -2.25, -0.5]))
        self.assertEqual((found.what, found.position, found.plain, found.other, found.gap), ("token", 1, "'b'", "'x'", 0.25))
        found = self.difference(completion(["a", "b"], [-1.0, -2.0]))
        self.assertEqual((found.what, found.position), ("length", 2))
        found = self.difference(completion(["a", "b", "c"], [-1.0, -2.0, -0.5], finish_reason="stop"))
        self.assertEqual((found.what, found.other), ("length", "ends by stop"))
        found = self.difference(Reply.of({"choices": [{"text": "abd", "finish_reason": "length"}]}, Asked("completions", "p", 0.0, None, 8), "url"))
        self.assertEqual((found.what, found.position), ("text", 2))

    def test_ids_decide_where_they_are_given(self):
        self.assertEqual(completion(["a", "b"], [-1.0, -2.0], token_ids=[4, 5]).tokens, [4, 5])

    def test_a_stream_is_put_together(self):
        reply = StreamedReply(Asked("chat", "p", 0.0, None, 8, True), "url")
        entry = lambda token: {"content": [{"token": token, "logprob": -1.0, "top_logprobs": [{"token": token, "logprob": -1.0}, 3]}]}
        reply.add({"choices": [{"delta": {"role": "assistant", "content": ""}}]}, 0.5)
        reply.add({"choices": [{"delta": {"reasoning_content": "a"}, "logprobs": entry("a")}]}, 1.0)
        reply.add({"choices": [{"delta": {"content": "b"}, "logprobs": entry("b"), "finish_reason": "stop"}]}, 2.0)
        reply.add({"choices": [], "usage": {"completion_tokens": 2}}, 3.0)
        self.assertEqual((reply.text, reply.tokens, reply.logprobs, reply.finish), ("ab", ["a", "b"], [-1.0, -1.0], "stop"))
        self.assertEqual((reply.first_s, reply.total_s, reply.completion_tokens, reply.tops[1]), (1.0, 3.0, 2, {"b": -1.0}))

    def test_replies_of_other_shapes_raise_nothing_else(self):
        kinds = [Asked(kind, "p", 0.0, None, 8, True) for kind in ("completions", "chat")]
        values = [None, 1, "x", [], {}, {"choices": 1}, {"choices": []}, {"choices": [1]}, {"error": {"message": "no"}}, {"choices": [{}]}]
        values += [{"choices": [{"text": 1, "message": 1, "logprobs": logprobs, "token_ids": ["x"]}], "usage": 1, "timings": {"draft_n": True}}
                   for logprobs in (1, [], {"tokens": 1}, {"tokens": [1]}, {"tokens": ["a"], "token_logprobs": 1, "top_logprobs": [1]},
                                    {"content": 1}, {"content": [1]}, {"content": [{"top_logprobs": 1}]}, {"content": [{"top_logprobs": [1]}]})]
        for asked in kinds:
            for value in values:
                try:
                    Reply.of(value, asked, "url")
                    StreamedReply(asked, "url").add(value, 1.0)
                except KitError:
                    pass

    def test_prompts_are_read(self):
        self.assertEqual(prompts.read(None, 2), prompts.BUILT_IN[:2])


if __name__ == "__main__":
    unittest.main()
