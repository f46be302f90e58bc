#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--record` and `foretoken replay` as their users meet them, on tiny models."""
import json
import os

from cli_testing import DRAFT, TARGET, Transcript, main, run


class Replay(Transcript):
    WAY_OUT = r"; [^\n]+"

    def setUp(self):
        self.folder = self.new_folder()
        self.trace = os.path.join(self.folder, "run.jsonl")

    def generate(self, k, *flags):
        return self.json("generate", "-m", TARGET, "-md", DRAFT, "-p", "once upon", "-n", "60", "--temp", "0", "--ignore-eos", "-t", "1",
                         "--lookahead", "fixed", "--num-speculative-tokens", str(k), "--json", "-q", *flags)

    def test_a_record_replays_with_what_the_run_reported(self):
        reported = self.generate(3, "--record", self.trace)["speculation"]
        replayed = json.loads(self.done("replay", self.trace, "--json").stdout)
        by_k = {row["num_speculative_tokens"]: row for row in replayed["replayed"] if row["lookahead"] == "fixed"}
        self.assertEqual(sorted(by_k), list(range(9)))
        for key in ("rounds", "drafted", "accepted"):
            self.assertEqual(by_k[3][key], reported[key], key)
            self.assertEqual(replayed["measured"][0][key], reported[key], key)
        self.assertEqual(by_k[0]["rounds"], 59)
        self.assertIn("measured_tokens_per_second", by_k[3])
        self.assertNotIn("measured_tokens_per_second", by_k[2])
        self.assertEqual({row["lookahead"] for row in replayed["replayed"]}, {"fixed", "ewma", "heuristic", "cost-model"})
        for other in (1, 5):
            rounds = self.generate(other)["speculation"]["rounds"]
            self.assertLess(abs(by_k[other]["rounds"] - rounds), 0.2 * rounds)

    def test_the_table_marks_what_was_recorded(self):
        self.generate(3, "--record", self.trace)
        lines = self.done("replay", self.trace).stdout.decode().splitlines()
        self.assertTrue(all(len(line) <= 100 for line in lines), lines)
        self.assertEqual([line.split("  ")[0] for line in lines if line.startswith("fixed K") and "*" in line], ["fixed K 3"])
        one = self.done("replay", self.trace, "--num-speculative-tokens", "5", "--lookahead", "cost-model").stdout.decode()
        self.assertIn("cost-model, at most 5", one)
        self.assertNotIn("fixed K 5", one)

    def test_what_cannot_be_read_is_an_error_of_one_line(self):
        self.fails(2, "no trace is named", "replay")
        self.fails(1, "no such file", "replay", os.path.join(self.folder, "none"))
        self.fails(1, "line 1", "replay", TARGET)
        self.generate(3, "--record", self.trace)
        self.fails(2, "cost-model", "replay", self.trace, "--lookahead", "clever")
        self.fails(2, "whole number", "replay", self.trace, "--num-speculative-tokens", "many")
        with open(self.trace, "rb+") as file:
            file.truncate(os.path.getsize(self.trace) - 5)
        self.fails(1, "cut off", "replay", self.trace)
        self.generate(0, "--record", self.trace)
        self.fails(2, "nothing was drafted", "replay", self.trace)

    def test_records_replace_only_records(self):
        self.fails(2, "not a trace", "generate", "-m", TARGET, "-p", "a", "-n", "4", "-q", "--record", DRAFT)
        self.fails(1, "cannot create", "generate", "-m", TARGET, "-p", "a", "-n", "4", "-q", "--record", self.folder + "/no/run.jsonl")

    def test_a_full_disk_is_an_error_after_the_text(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        result = run("generate", "-m", TARGET, "-p", "a", "-n", "4", "--ignore-eos", "-q", "--record", "/dev/full")
        self.assertEqual(result.returncode, 1)
        self.assertGreater(len(result.stdout), 1)
        self.assertRegex(result.stderr.decode(), r"\Aforetoken: /dev/full: cannot write: No space left[^\n]*; [^\n]+\n\Z")


if __name__ == "__main__":
    main()
