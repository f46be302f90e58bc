#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every link from a Markdown page of this project to a file of it, and to a heading in a page, leads somewhere. Images and <picture> sources count too.

usage: check_links.py
"""
import os
import re
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
LINK = re.compile(r'\]\(([^)\s]+)\)|\b(?:src|srcset)="([^"\s]+)"')


def pages():
    """All Markdown files, outside of build folders and hidden ones."""
    for path, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in ("build", "node_modules"))
        yield from (os.path.relpath(os.path.join(path, name), ROOT) for name in sorted(names) if name.endswith(".md"))


def anchors(text):
    """The names that GitHub gives to the headings of a page."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        words = re.sub(r"\]\([^)]*\)|[`*\[\]]", "", heading).strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def broken(page, text):
    """The links of a page's text that lead nowhere."""
    found = []
    for match in LINK.finditer(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        target = match.group(1) or match.group(2)
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        full = os.path.normpath(os.path.join(ROOT, os.path.dirname(page), path)) if path else os.path.join(ROOT, page)
        if not os.path.exists(full):
            found.append(f"{page}: {target}: no such file")
        elif anchor and full.endswith(".md"):
            with open(full, encoding="utf-8") as file:
                if anchor not in anchors(file.read()):
                    found.append(f"{page}: {target}: no such heading")
    return found


def controls():
    assert broken("docs/x.md", "[a](../README.md), [b](performance.md#performance), [c](https://example.org/x)") == []
    assert len(broken("docs/x.md", '[a](nothing.md), [b](performance.md#nothing), <img src="nothing.svg">')) == 3


def main():
    controls()
    problems, n = [], 0
    for page in pages():
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            text = file.read()
        n += len(LINK.findall(text))
        problems += broken(page, text)
    for problem in problems:
        print(problem)
    if not problems:
        print(f"links: {n} lead somewhere")
    return 1 if problems or n < 50 else 0


if __name__ == "__main__":
    sys.exit(main())
