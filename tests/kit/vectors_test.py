#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`speculation_kit vectors` on foretoken's rules, on wrong ones, and on input that is wrong.

usage: vectors_test.py LIBRARY
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from kit_testing import KIT, ROOT, VECTORS, run_kit
import mistakes

EXAMPLES = KIT / "examples"
MISTAKES = pathlib.Path(mistakes.__file__)
os.environ.update(FORETOKEN_LIBRARY=os.path.abspath(sys.argv[1]), PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1")


class VectorsTest(unittest.TestCase):
    def counts(self, value):
        return value["right"], value["wrong"], value["left_out"]

    def run_rule(self, name):
        return run_kit("vectors", "--function", f"{MISTAKES}:{name}")

    def test_foretokens_rules_are_right(self):
        n = len(VECTORS.read_text().splitlines())
        example = EXAMPLES / "foretoken_package.py"
        for how in (("--function", f"{example}:answer"), ("--command", f"'{sys.executable}' '{example}'")):
            code, value, out, err = run_kit("vectors", *how)
            self.assertEqual((code, self.counts(value), value["verdict"]), (0, (n, 0, 0), "right"), out + err)
            self.assertIn("| block | 13 | 0 | 0 |", out)

    def test_each_mistake_is_found(self):
        self.assertEqual(self.run_rule("no_mistake")[0], 0)
        for name in mistakes.NAMES:
            with self.subTest(name=name):
                code, value, out, _ = self.run_rule(name)
                self.assertEqual((code, value["verdict"]), (1, "wrong"))
                self.assertEqual(len(value["failed"]), value["wrong"])
                self.assertIn("## Wrong rounds", out)

    def test_rounds_may_be_left_out_but_not_all(self):
        for how in (("--function", f"{EXAMPLES}/greedy.py:answer"), ("--command", f"'{sys.executable}' '{EXAMPLES}/greedy.py'")):
            code, value, out, err = run_kit("vectors", *how)
            self.assertEqual((code, value["wrong"], value["right"]), (0, 0, 12), out + err)
        code, value, _, _ = self.run_rule("answers_nothing")
        self.assertEqual((code, value["verdict"]), (1, "not shown"))

    def test_what_a_function_raises_is_a_wrong_answer(self):
        for name, part in (("raises", "LookupError: mine"), ("gives_text", "no list of tokens")):
            code, value, out, _ = self.run_rule(name)
            self.assertEqual((code, value["right"]), (1, 0))
            self.assertIn(part, out)

    def test_wrong_input_gives_one_error(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "some.jsonl")
            function = ("--function", f"{MISTAKES}:no_mistake")
            for text, part in (("", "no rounds"), ("[1]", "line 1: no JSON object"), ("{}\n", "no round with name"), ("[" * 100_000, "no JSON"),
                               ('{"name": "x", "strategy": "greedy", "drafts": [], "expected": {"accepted": 1, "next": 0}}', "no round with name")):
                pathlib.Path(path).write_text(text)
                self.fails(part, *function, "--vectors", path)
            self.fails("No such file", *function, "--vectors", os.path.join(folder, "none"))
        self.fails("has no function nothing", "--function", f"{MISTAKES}:nothing")
        self.fails("no such file", "--function", "none.py:x")
        self.fails("ModuleNotFoundError", "--function", "no_such_module:x")
        self.fails("write MODULE:FUNCTION", "--function", "nothing")
        self.fails("No such file", "--command", "/no/such/program")
        self.fails("exit code 3", "--command", "sh -c 'exit 3'")
        self.fails("0 lines for 126 rounds", "--command", "true")
        self.fails("answer 1: no JSON", "--command", "sed 's/.*/x/'")
        self.fails("not done after 0.5 s", "--command", "sleep 1000", "--timeout", "0.5")
        self.fails("No closing quotation", "--command", "sh '")

    def fails(self, part, *arguments):
        code, value, _, err = run_kit("vectors", *arguments)
        self.assertEqual((code, value), (2, None), err)
        self.assertEqual(err.count("\n"), 1, err)
        self.assertTrue(err.startswith("speculation_kit: ") and part in err, err)

    def test_the_kit_may_be_taken_away(self):
        """As docs/kit.md says: as a folder with the vectors in it, and as one file."""
        with tempfile.TemporaryDirectory() as folder:
            away = pathlib.Path(folder) / "away"
            shutil.copytree(KIT, away)
            code, _, _, err = run_kit("vectors", "--function", f"{away}/examples/greedy.py:answer", kit=away)
            self.assertEqual(code, 2)
            self.assertIn("not beside the kit", err)
            shutil.copy(VECTORS, away / "speculation_kit")
            code, value, _, err = run_kit("vectors", "--function", f"{away}/examples/greedy.py:answer", kit=away)
            self.assertEqual((code, value["right"]), (0, 12), err)
            archive = pathlib.Path(folder) / "kit.pyz"
            subprocess.run([sys.executable, "-m", "zipapp", away, "-o", archive, "-m", "speculation_kit.__main__:run"], check=True)
            done = subprocess.run([sys.executable, archive, "vectors", "--function", f"{away}/examples/greedy.py:answer"], cwd=folder,
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("12 of 126 rounds are right", done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
