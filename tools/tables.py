#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of the documents that are made from the registries' rows, or checks them.

usage: tables.py PROGRAM [--check | --controls]

PROGRAM is the built foretoken; `foretoken help --json` gives the rows. In a document,

    <!-- table: NAME -->
    ... made by tools/tables.py ...
    <!-- end -->

holds a table, or several with their headings (docs/cli.md), and <!-- list: NAME -->a, b<!-- end --> a list of names in a line. Without an option
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
    if drafter["copies_target"]:
        return "memory for the copy"
    return drafter["drafts_from"] or "nothing"


def anchor(verb):
    """The heading of a verb's section in docs/cli.md, as a link names it."""
    return f"foretoken-{verb}"


def flag_line(flag):
    """A flag: its short and its first long name with the value, what it does, further names, its default. Long names would tear a table's cells."""
    names = [flag["name"], *flag["aliases"]]
    long = next((name for name in names if name.startswith("--")), names[0])
    shown = [flag["name"], long] if long != flag["name"] else [long]
    others = [name for name in names if name not in shown]
    about, default = flag["help"], flag["default"]
    if about.startswith("default "):
        default, _, about = default.partition("; ")
    elif default:
        about = re.sub(r"(; |: )default:? $", "", about[:len(about) - len(default)])
    form = " ".join(filter(None, [", ".join(shown), flag["value"]]))
    text = "; ".join(filter(None, [about.replace("<", "&lt;"), f"also {codes(others)}" if others else ""]))
    return f"- {code(form)}: {text}" + (f". *Default: {default.replace('<', '&lt;')}*" if default else "") + "\n"


def flag_list(flags):
    return "".join(map(flag_line, flags))


def title(group):
    """A group's name without its remark: "Speculation (changes the speed, ...)" is "Speculation"."""
    return group.partition(" (")[0]


def identity(flag):
    return title(flag["group"]), flag["name"], flag["help"]


def shared_flags(rows):
    """{group: flags} of those that two verbs or more have alike; of a flag with several helps, the one that most verbs have."""
    seen = {}
    for verb in rows["verbs"]:
        for flag in verb["flags"]:
            seen.setdefault(title(flag["group"]), {}).setdefault(flag["name"], {}).setdefault(flag["help"], []).append(flag)
    shared = {}
    for group, names in seen.items():
        most = [max(helps.values(), key=len) for helps in names.values()]
        shared[group] = [flags[0] for flags in most if len(flags) > 1]
    return {group: flags for group, flags in shared.items() if flags and group != "Flags"}


def inherited(verb, shared):
    """Which shared flags a verb has, in words: nearly whole groups by a link, parts of one by their names."""
    own = {identity(flag) for flag in verb["flags"]}
    parts = []
    for group, flags in shared.items():
        lacking = [flag for flag in flags if identity(flag) not in own]
        link = f"[{group}](#{group.lower().replace(' ', '-')})"
        if not lacking:
            parts.append(f"all of {link}")
        elif len(lacking) <= 2 and len(flags) > 4:
            parts.append(f"{link} without {codes(flag['name'] for flag in lacking)}")
        elif len(lacking) < len(flags):
            parts.append(f"{codes(flag['name'] for flag in flags if flag not in lacking)} of {link}")
    return "; ".join(parts)


def reference(rows):
    """A section for each verb."""
    shared = shared_flags(rows)
    common = {identity(flag) for flags in shared.values() for flag in flags}
    text = []
    for verb in rows["verbs"]:
        used = [flag for flag in verb["flags"] if flag["essential"]]
        further = [flag for flag in verb["flags"] if not flag["essential"] and identity(flag) not in common]
        text.append(f"## foretoken {verb['name']}\n\n{verb['description']}\n\n```\n{verb['usage']}\n")
        text.append("".join(f"\n{line}" for line in verb["examples"]) + ("\n" if verb["examples"] else "") + "```\n\n")
        if used:
            text.append(("Most used:\n\n" if len(used) < len(verb["flags"]) else "") + flag_list(used) + "\n")
        if further:
            text.append(f"Further flags of this verb:\n\n{flag_list(further)}\n")
        if inherited(verb, shared):
            text.append(f"In common with other verbs: {inherited(verb, shared)}.\n\n")
    return "".join(text)


def common_flags(rows):
    """A section for each group of flags that several verbs have."""
    remarks = {title(flag["group"]): flag["group"] for verb in rows["verbs"] for flag in verb["flags"]}
    text = []
    for group, flags in shared_flags(rows).items():
        _, _, remark = remarks[group].partition(" (")
        text.append(f"### {group}\n\n" + (f"{remark.removesuffix(')')[:1].upper()}{remark.removesuffix(')')[1:]}.\n\n" if remark else "") + flag_list(flags) + "\n")
    return "".join(text)


def sampling(rows):
    """The parameters of sampling, by their flags."""
    generate = next(verb for verb in rows["verbs"] if verb["name"] == "generate")
    return flag_list([flag for flag in generate["flags"] if flag["group"] == "Sampling"])


UNBOUNDED = 1 << 24  # a limit that only keeps numbers sane
SHARED = "#/components/schemas/"
KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "object": "object", "array": "list"}

# What the shared forms are called where a table has no room for them.
FORMS = {"Token": "token id", "Part": "part", "Bias": "number", "VerifyStrategy": "name", "Method": "name", "ChatMessage": "message", "Tool": "tool",
         "ToolChoice": "word or object", "JsonSchema": "JSON Schema", "ResponseFormat": "object", "LlamaCppPrompt": "prompt", "TextBlock": "text block",
         "AnthropicMessage": "message", "AnthropicTool": "tool", "OllamaMessage": "message", "ResponseItem": "item"}


def bounds(schema):
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is None and most is None:
        return ""
    if most is None or most >= UNBOUNDED:
        return f" from {least:g}" if least is not None and least > -UNBOUNDED else ""
    return f" to {most:g}" if least is None else f" {least:g} to {most:g}"


def values(schema, shared):
    """What a field may be, in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(SHARED)
        return FORMS[name] if name in FORMS else values(shared[name], shared)
    if "enum" in schema:
        return ", ".join(code(word if isinstance(word, str) and word else json.dumps(word)) for word in schema["enum"] if word is not None)
    if "const" in schema:
        return code(json.dumps(schema["const"]).strip('"'))
    if "anyOf" in schema and "properties" not in schema:
        return " or ".join(dict.fromkeys(filter(None, (values(part, shared) for part in schema["anyOf"]))))
    kinds = schema.get("type", [])
    kinds = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
    if kinds == ["array"] and schema.get("items"):
        item = values(schema["items"], shared)
        return f"list of {item}s" if re.fullmatch(r"[\w ]+", item) else f"list of ({item})"
    return " or ".join(KINDS[kind] for kind in kinds) + bounds(schema)


def is_foreign(schema):
    return schema["description"].startswith("a field of other servers")


def field_rows(schema, shared, skipped=(), where=""):
    """(names, values, what it is) of the fields of a body; those of another name stand with their own one."""
    properties = schema["properties"]
    for name, field in properties.items():
        about = field["description"]
        if is_foreign(field) or about.startswith("another name of") or where + name in skipped:
            continue
        others = [other for other, too in properties.items() if too["description"] == f"another name of `{name}`"]
        default = "; default " + code(json.dumps(field["default"])) if "default" in field else ""
        needed = "; **needed**" if name in schema.get("required", []) else ""
        yield " = ".join(code(where + one) for one in [name, *others]), values(field, shared) + default, about + needed
        if "properties" in field:
            yield from field_rows(field, shared, (), where + name + ".")


def fields_of(*paths, without=()):
    """A table of the fields of the paths' bodies, without those that other paths have, too."""
    def body(rows, path):
        schema = rows["openapi"]["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        return schema if "properties" in schema else schema["anyOf"][0]

    def made(rows):
        shared = rows["openapi"]["components"]["schemas"]
        skipped = {name for path in without for name in body(rows, path)["properties"]}
        found = {}
        for path in paths:
            for row in field_rows(body(rows, path), shared, skipped):
                found.setdefault(row, set()).add(path)
        marks = {row: "" if len(where) == len(paths) else f" ({', '.join(code(path) for path in where)})" for row, where in found.items()}
        return written_table(("Field", "Values", "What it is"), [(names, kind, about + marks[names, kind, about]) for names, kind, about in found])
    return made


def foreign_fields(refused):
    """The fields of other servers that chats and completions know: those that are refused, or the others."""
    def made(rows):
        lines = []
        for path in ("/v1/completions", "/v1/chat/completions"):
            for name, field in rows["openapi"]["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"].items():
                if is_foreign(field) and ("enum" in field) == refused and code(name) not in lines:
                    lines.append(code(name))
        return ", ".join(lines) + ".\n"
    return made


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
    "networks": ("architectures", ("`general.architecture`", "Networks"), lambda r: (code(r["name"]), r["networks"])),
    "endpoints": ("endpoints", ("Path", "What it does"),
                  lambda r: (code(f"{r['method']} {r['path'].replace('*', 'NAME')}"), r["about"])),
    "paths": ("endpoints", ("Path", "Works", "Needs a key, if there are keys"),
              lambda r: (code(f"{r['method']} {r['path'].replace('*', 'NAME')}"), f"no: always an error ({r['refuses']})" if "refuses" in r else "yes",
                         "yes" if r["needs_key"] else "no")),
    "verbs": ("verbs", ("Verb", "What it does"), lambda r: (f"[`{r['name']}`](#{anchor(r['name'])})", r["summary"])),
}
# What is made of more than one list, or is more than one table.
SECTIONS = {"reference": reference, "common_flags": common_flags, "sampling": sampling,
            "fields_of_both": fields_of("/v1/completions", "/v1/chat/completions"),
            "fields_of_responses": fields_of("/v1/responses"), "fields_of_messages": fields_of("/v1/messages"),
            "fields_of_embeddings": fields_of("/v1/embeddings"), "fields_of_rerank": fields_of("/v1/rerank"),
            "fields_of_ollama": fields_of("/api/chat", "/api/generate"),
            "fields_of_llama_cpp": fields_of("/completion", "/infill", without=("/v1/completions",)),
            "foreign_refused": foreign_fields(True), "foreign_idle": foreign_fields(False)}
# Each list: the rows' list, which rows, and how a name is written.
LISTS = {
    "types": ("types", lambda r: True, lambda r: r["name"]),
    "architectures": ("architectures", lambda r: True, lambda r: f"{code(r['name'])} ({r['networks']})"),
    "drafters": ("drafters", lambda r: True, lambda r: code(r["name"])),
    "lossless": ("strategies", lambda r: r["lossless"], lambda r: code(r["name"])),
    "lossy": ("strategies", lambda r: not r["lossless"], lambda r: code(r["name"])),
    "controllers": ("controllers", lambda r: True, lambda r: code(r["name"])),
    "engine_keys": ("engine", lambda r: r["in_c"], lambda r: code(r["name"])),
    "sampling_keys": ("sampling", lambda r: True, lambda r: code(r["name"])),
    "verbs": ("verbs", lambda r: r["name"] not in ("help", "version", "completion", "man"), lambda r: code(r["name"])),
}


def written_table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for cells in rows:
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "".join(re.sub(r" +\|", " |", line).replace("|  |", "| |") + "\n" for line in lines)


def table(name, rows):
    if name in SECTIONS:
        return SECTIONS[name](rows)
    kind, headings, cells = TABLES[name]
    return written_table(headings, [cells(row) for row in rows[kind]])


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
    return LIST.sub(one(LISTS, names), TABLE.sub(one({**TABLES, **SECTIONS}, table), text))


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
    for name in sorted({*TABLES, *SECTIONS} - held):
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
    flags = rows["verbs"][0]["flags"]

    def with_flags(changed):
        return texts, {**rows, "verbs": [{**rows["verbs"][0], "flags": changed}, *rows["verbs"][1:]]}

    document = json.loads(json.dumps(rows["openapi"]))
    body = document["paths"]["/v1/messages"]["post"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
    body["max_tokens"]["minimum"] = 2
    new = {**rows, "strategies": [*rows["strategies"], {**rows["strategies"][0], "name": "brand-new"}]}
    planted = {
        "a row is missing": (with_table("".join(lines[:-1])), rows),
        "a cell was edited": (with_table(match.group(2).replace("argmax", "argmin", 1)), rows),
        "a row is too many": (with_table(match.group(2) + lines[-1]), rows),
        "a registry has a new row": (texts, new),
        "a setting is new": (texts, renamed),
        "a flag is new": with_flags([*flags, {**flags[-1], "name": "--brand-new", "aliases": []}]),
        "a flag is gone": with_flags(flags[:-1]),
        "a flag's help is another": with_flags([*flags[:-1], {**flags[-1], "help": "another help"}]),
        "a flag's default is another": with_flags([{**flags[0], "default": "another"}, *flags[1:]]),
        "a verb is new": (texts, {**rows, "verbs": [*rows["verbs"], {**rows["verbs"][0], "name": "brand-new"}]}),
        "a network is new": (texts, {**rows, "architectures": [*rows["architectures"], {**rows["architectures"][0], "name": "brand-new"}]}),
        "an endpoint is new": (texts, {**rows, "endpoints": [*rows["endpoints"], {**rows["endpoints"][0], "path": "/brand-new"}]}),
        "a field's range is another": (texts, {**rows, "openapi": document}),
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
