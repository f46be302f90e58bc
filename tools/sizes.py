#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the files and functions that outgrow the aims (files 400 lines, headers 200, functions 50), for
a reviewer to look at. Never fails. Functions are told by layout: they begin and end in column 0."""
import pathlib
import re
import subprocess

FILE_AIM, HEADER_AIM, FUNCTION_AIM = 400, 200, 50
BEGIN = re.compile(r"^(?!namespace|struct|class|enum|union|extern|#|//|\}|\s)\S.*\{$")


def functions(lines):
    start = None
    for number, line in enumerate(lines, 1):
        if start is None and BEGIN.match(line) and "(" in line + (lines[number - 2] if number > 1 else ""):
            start = number, line
        elif start is not None and line.startswith("}"):
            yield number - start[0] + 1, start[0], start[1]
            start = None


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.h", "*.cpp"], cwd=root,
                            capture_output=True, text=True, check=False).stdout.split()
    files, long_functions, totals = [], [], {"code": 0, "tests": 0}
    for name in listed:
        path = root / name
        if not path.is_file():
            continue
        lines = path.read_text(errors="replace").splitlines()
        is_test = name.startswith("tests/") or name.endswith("_test.cpp")
        totals["tests" if is_test else "code"] += len(lines)
        aim = HEADER_AIM if name.endswith(".h") else FILE_AIM
        if len(lines) > aim:
            files.append((len(lines), name))
        long_functions += [(n, f"{name}:{line}", text) for n, line, text in functions(lines) if n > FUNCTION_AIM]
    print(f"{len(listed)} files, {totals['code']} lines of code, {totals['tests']} lines of tests")
    for lines, name in sorted(files, reverse=True):
        print(f"  {lines:5} lines  {name}")
    for lines, where, text in sorted(long_functions, reverse=True):
        print(f"  {lines:5} lines  {where}  {text[:60]}")


if __name__ == "__main__":
    main()
