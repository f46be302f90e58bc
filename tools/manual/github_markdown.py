# SPDX-License-Identifier: Apache-2.0
"""Pages that are written for GitHub, read by Python-Markdown.

Contract: `adapted` changes the text of a page so that Python-Markdown sees the lists, tables and pictures that GitHub sees; `TwoSpaces` makes
Python-Markdown nest what is indented by two spaces. Code is never changed.
"""
import re

from markdown.blockprocessors import build_block_parser
from markdown.extensions import Extension

ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+\S")
FENCE = re.compile(r"^[ ]*(```+|~~~+).*?^[ ]*\1[ ]*$\n?", re.M | re.S)
PICTURE = re.compile(r'<picture>\s*<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s*<img alt="([^"]*)" src="([^"]+)">\s*</picture>')


def outside_fences(text, change):
    """`text` with `change` applied to all that is in no fenced block."""
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [change(text[end:fence.start()]), fence.group()]
        end = fence.end()
    return "".join(parts) + change(text[end:])


def kind(line):
    """What a line can begin: a table, a list, or nothing of these."""
    if line.lstrip().startswith("|"):
        return "table"
    return "list" if ITEM.match(line) else ""


def with_blank_lines(text):
    """On GitHub lists and tables end a paragraph, and so does an item that follows a paragraph of the item before; Python-Markdown needs a blank line."""
    lines, compact = [""], False  # blank behind the code before; compact: in a list, with no blank line since its last item began
    for line in text.split("\n"):
        before, now = lines[-1], kind(line)
        if before.strip() and now and now != kind(before) and not (now == "list" and compact):
            lines.append("")
        if now == "table":  # Python-Markdown does not divide cells in code, and shows the backslash
            line = re.sub(r"`[^`]*`", lambda code: code.group().replace("\\|", "|"), line)
        compact = now == "list" or compact and bool(line.strip())
        lines.append(line)
    return "\n".join(lines)


def pictures(text):
    """The theme chooses between a light and a dark image by the end of its address, so that its switch counts and not the system's."""
    return PICTURE.sub(r"![\2](\3#only-light)\n![\2](\1#only-dark)", text)


def adapted(text):
    text = re.sub(r"[ ]*<!-- (?:table|list|end)\b.*?-->", lambda mark: " " if mark.group().startswith(" ") else "", text)
    return outside_fences(pictures(text), with_blank_lines)


class TwoSpaces(Extension):
    """Must come before the extensions that add readers of blocks, because it makes those of Python-Markdown again."""

    def extendMarkdown(self, md):  # the name is Python-Markdown's
        md.tab_length = 2
        md.parser = build_block_parser(md)
