#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how much the folders of instruction sets repeat each other, and fails above 15 %.

usage: check_repeated_lines.py [ROOT] [--list]

A line counts if it has at least 12 characters without its comment and its indentation, and if it is more than an
annotation of the next line: lines that begin with # (includes, pragmas) and heads of templates do not count. It is
repeated if the same line, blanks aside, stands in the folder of another instruction set. What two of them have in
common belongs into src/kernels/generic, which is compiled once for each. --list prints the repeated lines.
"""
import collections
import pathlib
import re
import sys

FOLDERS = ("avx2", "avxvnni", "avx512", "amx", "neon")
LEAST_LENGTH = 12
ANNOTATION = re.compile(r"#|template <[^>]*>$")
MOST = 0.15


def lines_of(folder):
    """(file, line) of the lines that count."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".h", ".cpp"):
            continue
        for line in path.read_text().splitlines():
            line = " ".join(re.sub(r"//.*", "", line).split())
            if len(line) >= LEAST_LENGTH and not ANNOTATION.match(line):
                yield path, line


def repeated_lines(kernels):
    """(all lines, repeated lines), each as (file, line)."""
    lines = {name: list(lines_of(kernels / name)) for name in FOLDERS}
    folders = collections.defaultdict(set)
    for name, of_folder in lines.items():
        for _, line in of_folder:
            folders[line].add(name)
    everything = [entry for of_folder in lines.values() for entry in of_folder]
    return everything, [(path, line) for path, line in everything if len(folders[line]) > 1]


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--list"]
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent).resolve()
    everything, repeated = repeated_lines(root / "src" / "kernels")
    if "--list" in sys.argv:
        for path, line in repeated:
            print(f"{path.relative_to(root)}: {line}")
    if not everything:
        print("check_repeated_lines: no lines below src/kernels; is this the root of the repository?")
        return 1
    share = len(repeated) / len(everything)
    print(f"check_repeated_lines: {len(repeated)} of {len(everything)} lines of instruction sets stand in another one's "
          f"folder too: {share:.1%}, at most {MOST:.0%}")
    if share > MOST:
        print("put what they share into src/kernels/generic; --list prints the lines")
    return share > MOST


if __name__ == "__main__":
    sys.exit(main())
