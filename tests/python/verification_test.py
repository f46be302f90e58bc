#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each round of verification.jsonl (docs/verification-vectors.md) on numpy logits, or on lists with --without-numpy; and inputs that are refused.

usage: verification_test.py LIBRARY PROGRAM MODELS [--without-numpy]
"""
import json

from python_testing import ROOT, WITHOUT_NUMPY, TestCase, foretoken, main, need_numpy

numpy = need_numpy()
VECTORS = ROOT / "tests/vectors/verification.jsonl"


def rows(matrix, columns):
    listed = [[float("-inf") if number is None else number for number in row] for row in matrix]
    if WITHOUT_NUMPY:
        return listed
    return numpy.array(listed, dtype=numpy.float64).reshape(len(listed), columns)


class VerificationTest(TestCase):
    def one(self, case):
        vocabulary = len(case["target_logits"][0])
        verification = foretoken.Verification(vocabulary, strategy=case["strategy"], **case["settings"], **case["sampling"])
        named = {field: rows(case[field], vocabulary) for field in ("draft_probabilities", "draft_logits") if field in case}
        found = verification.verify(rows(case["target_logits"], vocabulary), case["drafts"], text=case["text"], generated=case["generated"],
                                    **named, **case["uniforms"])
        expected = case["expected"]
        self.assertEqual((found.accepted, found.next, found.origin.name.lower()), (expected["accepted"], expected["next"], expected["kind"]))

    def test_rounds_are_as_written(self):
        cases = [json.loads(line) for line in VECTORS.read_text().splitlines()]
        self.assertGreaterEqual(len(cases), 100)
        for case in cases:
            with self.subTest(name=case["name"], strategy=case["strategy"]):
                self.one(case)

    def test_wrong_input_is_refused(self):
        wrong, logits = foretoken.Code.INVALID_ARGUMENT, [[0.0, 1, 2, 3], [0, 1, 2, 3]]
        verification = foretoken.Verification(4, seed=1)
        self.assertIn(verification.verify(logits, [3]).next, range(4))
        self.assertEqual(verification.verify(logits, [3], position=5), verification.verify(logits, [3], position=5))
        self.fails(wrong, "target_logits", "[2, 4], not [3]", verification.verify, logits, [3, 3])
        self.fails(wrong, "draft_probabilities", "[1][4]", verification.verify, logits, [3], draft_probabilities=[[0.5, 0.5]])
        self.fails(wrong, "drafts", "4", verification.verify, logits, [4])
        self.fails(wrong, "drafts", "give token ids", verification.verify, logits, [1 << 40])
        self.fails(wrong, "accept", "2 numbers, not 1", verification.verify, logits, [3], accept=[0.1, 0.2])
        self.fails(wrong, "generated", "text_count", verification.verify, logits, [3], generated=1)
        self.fails(wrong, "strategy", "unheard-of", foretoken.Verification, 4, strategy="unheard-of")

    def test_processors_edit_the_targets_logits(self):
        def only_two(text, logits):
            logits[0] = logits[1] = logits[3] = float("-inf")

        verification = foretoken.Verification(4, processors=[only_two])
        self.assertEqual(verification.verify([[0.0, 1, 2, 3]]).next, 2)

        def bad(text, logits):
            raise LookupError("mine")

        with self.assertRaises(LookupError):
            foretoken.Verification(4, processors=[bad]).verify([[0.0, 1, 2, 3]])


if __name__ == "__main__":
    main()
