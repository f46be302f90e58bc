#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the documents that are made from the registries' rows, or checks them.

usage: tables.py PROGRAM [--check | --controls]

PROGRAM is the built foretoken; `foretoken help --json` gives the rows. In a document,

    <!-- table: NAME -->
    ... made by tools/tables.py ...
    <!-- end -->

holds a table, and <!-- list: NAME -->a, b<!-- end --> a list of names in a line. Without an option
the documents are rewritten. --check names what is stale, and settings that docs/configuration.md lacks, and fails. --controls shows, on copies of
the documents, that --check sees a stale table.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TABLE = re.compile(r"<!-- table: (\w+) -->\n(.*?)<!-- end -->", re.S)
LIST = re.compile(r"<!-- list: (\w+) -->(.*?)<!-- end -->")
OPENED = re.compile(r"<!-- (?:table|list): ")


def code(name):
    return f"`{name}`"


def codes(names):
    return ", ".join(code(name) for name in names)


def needs(drafter):
    """What a drafter drafts from, in a few words."""
    if drafter["reads_features"]:
        return "a head's file" + (", or a model with a head" if drafter["in_target"] else "")
    if drafter["reads_file"]:
        return "a draft model's file"
    return drafter["drafts_from"] or "nothing"


# Each table: the rows' list, its headings, and the cells of a row.
TABLES = {
    "drafters": ("drafters", ("Method", "Other names", "What drafts", "Needs", "Reports distributions"),
                 lambda r: (code(r["name"]), codes(r["aliases"]), r["help"], needs(r), "yes" if r["reports_q"] else "no: every draft is certain")),
    "strategies": ("strategies", ("Name", "Accept d_i if and only if", "Token in place of a rejected draft", "Random numbers", "Lossless"),
                   lambda r: (code(r["name"]), r["accepts_if"], r["else_takes"], r["random_numbers"], "yes" if r["lossless"] else "no")),
    "controllers": ("controllers", ("Controller", "Length of the next draft", "K if none is given"),
                    lambda r: (code(r["name"]) + (" (default)" if r["default"] else ""), r["length"], r["default_k"])),
    "architectures": ("architectures", ("`general.architecture`", "Networks", "Beside what all have in common"),
                      lambda r: (code(r["name"]), r["networks"], r["traits"])),
    "types": ("types", ("Type", "Values / bytes of a block", "Products with"),
              lambda r: (r["name"], f"{r['block_values']} / {r['block_bytes']}", r["products"])),
    "endpoints": ("endpoints", ("Path", "What it does"),
                  lambda r: (code(f"{r['method']} {r['path'].replace('*', 'NAME')}"), r["about"])),
}
# Each list: the rows' list, which rows, and how a name is written.
LISTS = {
    "types": ("types", lambda r: True, lambda r: r["name"]),
    "architectures": ("architectures", lambda r: True, lambda r: f"{code(r['name'])} ({r['networks']})"),
    "drafters": ("drafters", lambda r: True, lambda r: code(r["name"])),
    "lossless": ("strategies", lambda r: r["lossless"], lambda r: code(r["name"])),
    "lossy": ("strategies", lambda r: not r["lossless"], lambda r: code(r["name"])),
    "controllers": ("controllers", lambda r: True, lambda r: code(r["name"])),
    "verbs": ("verbs", lambda r: r["name"] not in ("help", "version", "completion", "man"), lambda r: code(r["name"])),
}


def table(name, rows):
    kind, headings, cells = TABLES[name]
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for row in rows[kind]:
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells(row)) + " |")
    return "".join(re.sub(r" +\|", " |", line).replace("|  |", "| |") + "\n" for line in lines)


def names(name, rows):
    kind, chosen, written = LISTS[name]
    return ", ".join(written(row) for row in rows[kind] if chosen(row))


def documents(root):
    return [root / "README.md", *sorted((root / "docs").glob("*.md"))]


def rewritten(text, rows, faults, where):
    """The text as it should be. Adds faults that no rewriting mends."""
    def one(known, make):
        def replace(match):
            if match.group(1) not in known:
                faults.append(f"{where}: there is no table or list '{match.group(1)}'; use one of {', '.join(known)}")
                return match.group(0)
            begin, end = match.span(2)
            return text_of(match)[:begin - match.start()] + make(match.group(1), rows) + match.group(0)[end - match.start():]
        return replace

    def text_of(match):
        return match.group(0)

    if len(OPENED.findall(text)) != len(TABLE.findall(text)) + len(LIST.findall(text)):
        faults.append(f"{where}: a table or list has no end; write <!-- end --> behind it")
    return LIST.sub(one(LISTS, names), TABLE.sub(one(TABLES, table), text))


def check(texts, rows):
    """texts: {name: text}. The faults, in words."""
    faults = []
    held = set()
    for where, text in texts.items():
        held |= {match.group(1) for match in TABLE.finditer(text)}
        if rewritten(text, rows, faults, where) != text:
            faults.append(f"{where}: a table is stale; run tools/dev tables")
    settings = texts["docs/configuration.md"]
    for row in rows["settings"]:
        for name in [row["name"], *row["aliases"]]:
            if code(name) not in settings:
                faults.append(f"docs/configuration.md: the setting '{row['name']}' lacks its name {code(name)}; add it to the table")
    for name in sorted(set(TABLES) - held):
        faults.append(f"tools/tables.py: no document holds the table '{name}'; add it, or drop it here")
    return faults


def controls(texts, rows):
    """Faults planted into copies that check() does not see."""
    where, text = next((w, t) for w, t in texts.items() if "<!-- table: strategies -->" in t)
    match = next(m for m in TABLE.finditer(text) if m.group(1) == "strategies")
    lines = match.group(2).splitlines(keepends=True)

    def with_table(body):
        return {**texts, where: text[:match.start(2)] + body + text[match.end(2):]}

    renamed = {**rows, "settings": [*rows["settings"], {"name": "brand_new", "aliases": []}]}
    new = {**rows, "strategies": [*rows["strategies"], {**rows["strategies"][0], "name": "brand-new"}]}
    planted = {
        "a row is missing": (with_table("".join(lines[:-1])), rows),
        "a cell was edited": (with_table(match.group(2).replace("argmax", "argmin", 1)), rows),
        "a row is too many": (with_table(match.group(2) + lines[-1]), rows),
        "a registry has a new row": (texts, new),
        "a setting is new": (texts, renamed),
        "the end is missing": ({**texts, where: text.replace("<!-- end -->", "", 1)}, rows),
        "the name is unknown": ({**texts, where: text.replace("table: strategies", "table: tactics", 1)}, rows),
    }
    return [f"control: {what}, and the check does not see it" for what, (t, r) in planted.items() if not check(t, r)]


def main():
    program, *options = sys.argv[1:]
    rows = json.loads(subprocess.run([program, "help", "--json"], check=True, capture_output=True).stdout)
    texts = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in documents(ROOT)}
    if options == []:
        faults = []
        for where, text in texts.items():
            made = rewritten(text, rows, faults, where)
            if made != text:
                (ROOT / where).write_text(made, encoding="utf-8")
                print(f"{where}: written")
    else:
        faults = controls(texts, rows) if options == ["--controls"] else check(texts, rows)
    print("\n".join(faults) if faults else "tables: as the registries say")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
