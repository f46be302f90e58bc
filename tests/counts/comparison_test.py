#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Negative controls of kernel_counts: what it must find, on made-up counts and on files of made-up counts."""
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # beside the sources
import comparison
import counts_test

EXPECTED = {"matmul": 100_000, "rope": 2_000}


def scaled(factor):
    return {name: round(count * factor) for name, count in EXPECTED.items()}


class Comparison(unittest.TestCase):
    def test_equal_and_nearly_equal_counts_pass(self):
        for factor in (1, 1.04, 0.96):
            self.assertEqual(comparison.complaints("avx2", EXPECTED, scaled(factor)), [])

    def test_a_tenth_more_fails_for_every_kernel(self):
        lines = comparison.complaints("avx2", EXPECTED, scaled(1.1))
        self.assertEqual(len(lines), 2)
        self.assertIn("avx2: matmul: 110000 instructions in place of 100000 (+10.0%); find out", lines[0])

    def test_a_tenth_less_asks_for_the_lower_number(self):
        lines = comparison.complaints("avx2", EXPECTED, scaled(0.9))
        self.assertEqual(len(lines), 2)
        self.assertIn("lower the number", lines[0])

    def test_one_kernel_alone_is_found(self):
        lines = comparison.complaints("avx2", EXPECTED, EXPECTED | {"rope": 2_200})
        self.assertEqual(len(lines), 1)
        self.assertIn("rope", lines[0])

    def test_kernels_that_one_side_lacks_fail(self):
        self.assertIn("not measured", comparison.complaints("avx2", EXPECTED, {"matmul": 100_000})[0])
        self.assertIn("not expected", comparison.complaints("avx2", {"matmul": 100_000}, EXPECTED)[0])


class Dumps(unittest.TestCase):
    def read(self, dumps, names):
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate(dumps, 1):
                (pathlib.Path(folder) / f"counts.{number}").write_text(text)
            return counts_test.read_dumps(pathlib.Path(folder), names)

    def test_dumps_get_the_names_in_their_order(self):
        dumps = [f"desc: Trigger: --dump-after=CountedCall\ntotals: {n}\n" for n in range(1, 13)]
        names = [f"kernel {n}" for n in range(1, 13)]
        self.assertEqual(self.read(dumps, names)["kernel 10"], 10)

    def test_dumps_that_are_missing_or_empty_are_an_error(self):
        for dumps in ([], ["totals: 7\n"], ["totals: 7\n", "totals: 0\n"], ["totals: 7\n", "no such line\n"]):
            with self.assertRaises(counts_test.Failure):
                self.read(dumps, ["matmul", "rope"])


class Builds(unittest.TestCase):
    def test_other_builds_are_skipped(self):
        self.assertIsNone(counts_test.why_other("GNU 12.2.0:  -O3 -DNDEBUG\n"))
        for build in ("Clang 14.0.6:  -O3", "GNU 13.1.0:  -O3", "GNU 12.2.0:  -O1 -g1", "GNU 12.2.0: \n", "",
                      "GNU 12.2.0: -fsanitize=thread -O3", "GNU 12.2.0: -march=native -O3"):
            self.assertIsNotNone(counts_test.why_other(build), build)


if __name__ == "__main__":
    unittest.main()
