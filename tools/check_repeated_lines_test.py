#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Negative controls of check_repeated_lines.py: a folder copied from another one is found."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parent / "check_repeated_lines.py"
OWN = "#include <cstdint>\n// a comment that stands everywhere\nint {0}Function(int {0}argument);\n}};\n"
SHARED = "  int first = SharedFunction(second);\n"


class CheckRepeatedLinesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, isa, text):
        path = self.root / "src" / "kernels" / isa / "a.cpp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_check(self):
        done = subprocess.run([sys.executable, CHECK, self.root, "--list"], capture_output=True, text=True)
        return done.returncode, done.stdout

    def test_different_folders_pass(self):
        for isa in ("avx2", "avx512", "neon"):
            self.write(isa, OWN.format(isa))
        code, text = self.run_check()
        self.assertEqual(code, 0, text)
        self.assertIn("0 of 3 lines", text)

    def test_a_copied_line_is_found_whatever_its_indentation(self):
        self.write("avx2", OWN.format("avx2") + SHARED)
        self.write("neon", OWN.format("neon") + "    " + SHARED)
        code, text = self.run_check()
        self.assertEqual(code, 1, text)
        self.assertIn("2 of 4 lines", text)
        self.assertIn(f"src/kernels/neon/a.cpp: {SHARED.strip()}", text)

    def test_a_line_repeated_within_its_own_folder_is_none(self):
        self.write("avx2", OWN.format("avx2") + SHARED + SHARED)
        self.assertEqual(self.run_check()[0], 0)

    def test_an_empty_tree_is_an_error(self):
        self.assertEqual(self.run_check()[0], 1)


if __name__ == "__main__":
    unittest.main()
