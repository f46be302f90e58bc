#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The help on terminals of several widths, as tmux shows it. Exit code 77 (skipped) without tmux.

usage: help_terminal_test.py FORETOKEN
"""
import itertools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

from screen import SECONDS, Screen

PROGRAM = os.path.abspath(sys.argv[1])
ENVIRONMENT = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
VERBS = re.findall(r"(?m)^  ([a-z-]+)  +[a-z]", subprocess.run([PROGRAM], capture_output=True, check=True, timeout=SECONDS).stdout.decode())


def piped(*arguments, columns=None):
    environment = {**ENVIRONMENT, **({"COLUMNS": str(columns)} if columns else {})}
    return subprocess.run([PROGRAM, *arguments], capture_output=True, check=True, timeout=SECONDS, env=environment).stdout.decode()


def on_terminal(columns, *arguments, environment="-u COLUMNS"):
    """The lines of a terminal of this width, all that ran past the top included."""
    with Screen(f"env {environment} {shlex.join([PROGRAM, *arguments])}; echo the end; sleep 1000", columns, 50, ENVIRONMENT) as screen:
        text = screen.wait(r"(?m)^the end$", flags=("-S", "-2000"))
    return [line.rstrip() for line in re.split(r"(?m)^the end$", text)[0].splitlines()]


class Widths(unittest.TestCase):
    maxDiff = None

    def test_no_line_runs_over_the_edge_and_wide_terminals_are_used(self):
        for columns in (60, 80, 120):
            longest = 0
            for arguments in ((), ("generate", "--help"), ("generate", "--help-all"), ("help", "tokenize")):
                shown = on_terminal(columns, *arguments)
                # A line that ran over the edge would be two.
                self.assertEqual(shown, [line.rstrip() for line in piped(*arguments, columns=columns).splitlines()], (columns, arguments))
                longest = max(longest, max(map(len, shown)))
            self.assertGreater(longest, columns - 8)

    def test_columns_overrides_the_terminal_and_a_pipe_has_80(self):
        self.assertEqual(on_terminal(120, "help", "inspect", environment="COLUMNS=50"),
                         [line.rstrip() for line in piped("help", "inspect", columns=50).splitlines()])
        for verb in VERBS:
            self.assertEqual(piped(verb, "--help-all"), piped(verb, "--help-all", columns=80))
            self.assertLessEqual(max(map(len, piped(verb, "--help").splitlines())), 80)
        self.assertEqual(piped("help", columns="wide"), piped("help"))

    def test_an_error_is_broken_between_words(self):
        error = subprocess.run([PROGRAM, "generate", "-hf", "a/b"], capture_output=True, check=False, timeout=SECONDS, env=ENVIRONMENT)
        line = error.stderr.decode().rstrip("\n")
        self.assertGreater(len(line), 80, "in a pipe it is one line")
        shown = on_terminal(60, "generate", "-hf", "a/b")
        self.assertLessEqual(max(map(len, shown)), 60)
        self.assertEqual(" ".join(map(str.strip, shown)), line)

    def test_statistics_are_broken_between_words(self):
        arguments = ("generate", "-p", "Once upon a time", "-n", "40", "-s", "1", "--stats")
        models = {"FORETOKEN_MODELS": str(pathlib.Path(__file__).resolve().parents[2] / "models")}
        whole = subprocess.run([PROGRAM, *arguments], capture_output=True, check=True, timeout=SECONDS, env={**ENVIRONMENT, **models})
        drafter = re.search(r"(?m)^  drafter .*$", whole.stderr.decode()).group(0)
        self.assertGreater(len(drafter), 80, "a long line, and in a pipe it is one")
        for columns in (60, 80):
            shown = on_terminal(columns, *arguments, environment=f"-u COLUMNS FORETOKEN_MODELS={models['FORETOKEN_MODELS']}")
            first = next(i for i, line in enumerate(shown) if line.startswith("  drafter "))
            self.assertRegex(shown[first + 1], r"^ {12}\S")
            rest = itertools.takewhile(lambda line: line.startswith(" " * 12), shown[first + 1:])
            joined = " ".join([shown[first], *map(str.strip, rest)])
            self.assertEqual(joined, drafter)


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        print("skipped: no tmux")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
