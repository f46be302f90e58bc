#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every file that docs/threat-model.md and SECURITY.md name is there, and every test that is named behind a file stands in it.

A test is named so: `tests/server/http_test.py: test_a_name` or `src/kv/cache_test.cpp: Cache.ANameOfATest`.

usage: check_named_tests.py [--controls]
"""
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PAGES = ("docs/threat-model.md", "SECURITY.md")
NAMED = re.compile(r"`((?:tests|src|apps|tools|include|deploy)/[\w./@-]*)(?::\s+([\w., *-]+))?`")


def missing(page, text):
    """What the text of a page names and the tree lacks."""
    found = []
    for path, names in NAMED.findall(text):
        full = os.path.join(ROOT, path)
        if not os.path.exists(full):
            found.append(f"{page}: {path}: no such file")
            continue
        if not names:
            continue
        with open(full, encoding="utf-8") as file:
            source = file.read()
        for name in re.split(r",\s*", names.strip()):
            suite, _, test = name.rpartition(".")
            here = re.search(rf"\b(?:def|class) {re.escape(name)}\b", source) if not suite else re.search(
                rf"TEST(?:_F|_P)?\(\s*{re.escape(suite)},\s*{re.escape(test)}\s*\)", source)
            if not here:
                found.append(f"{page}: {path}: no test {name}")
    return found


def controls():
    """What is there passes, what is not there does not."""
    assert missing("x", "`tools/check_named_tests.py: controls`, `tests/server/soak.py`") == []
    assert len(missing("x", "`tools/nothing.py`, `tools/check_named_tests.py: control`, `src/kv/cache_test.cpp: Cache.Nothing`")) == 3


def main():
    controls()
    problems, named = [], 0
    for page in PAGES:
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            text = file.read()
        named += len(NAMED.findall(text))
        problems += missing(page, text)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"named tests: {named} files and tests are there")
    return 1 if problems or named < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
