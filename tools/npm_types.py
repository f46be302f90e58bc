#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the TypeScript types of requests (npm/foretoken/src/requests.d.ts) from the document of all paths, or checks that they are as it says.

usage: npm_types.py PROGRAM [--check]

PROGRAM is the built foretoken; `foretoken help --json` has the document. Other names of a field, and fields of other servers that change nothing,
have no place in the types.
"""
import json
import pathlib
import re
import subprocess
import sys

from tables import SHARED, is_foreign

OUT = pathlib.Path(__file__).resolve().parent.parent / "npm" / "foretoken" / "src" / "requests.d.ts"
HEAD = """// SPDX-License-Identifier: Apache-2.0
// The fields of requests, as the server reads them. Made by tools/npm_types.py; do not change it by hand.
"""
TYPES = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "array": "unknown[]", "object": "{ [name: string]: unknown }"}
BODIES = {"CompletionFields": "/v1/completions", "ChatFields": "/v1/chat/completions", "VerifyFields": "/v1/verify"}


def union(types):
    """Types as one; undefined where there are none."""
    found = list(dict.fromkeys(one for one in types if one))
    return "unknown" if "unknown" in found else " | ".join(found)


def grouped(text):
    return f"({text})" if re.search(r" [|&] ", text) else text


def list_of(schema):
    if "prefixItems" in schema:
        return f"[{', '.join(typed(one) for one in schema['prefixItems'])}]"
    return grouped(typed(schema["items"])) + "[]" if schema.get("items") else TYPES["array"]


def object_of(schema):
    if "properties" in schema:
        needed = schema.get("required", [])
        members = {name: typed(field) for name, field in schema["properties"].items()}
        return "{ " + "; ".join(f"{name}{'' if name in needed else '?'}: {kind}" for name, kind in members.items() if kind) + " }"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"{{ [name: string]: {typed(schema['additionalProperties'])} }}"
    return TYPES["object"]


def parts_of(schema):
    """The types that values have all at once."""
    if "properties" in schema:
        yield object_of(schema)
    if "anyOf" in schema:  # an alternative that only tells what another one is not says nothing to a compiler
        yield union(typed(one) for one in schema["anyOf"] if '"not"' not in json.dumps(one))
    yield from map(typed, schema.get("allOf", []))


def typed(schema):
    """The type of a schema's values; "" for null alone, which counts as an absent field."""
    if schema is False:
        return "never"
    if "$ref" in schema:
        return schema["$ref"].removeprefix(SHARED)
    if "enum" in schema or "const" in schema:
        words = schema.get("enum", [schema.get("const")])
        return union(json.dumps(word) for word in words if isinstance(word, (str, bool, int)) and word != "")
    parts = list(parts_of(schema))
    if parts:
        return parts[0] if len(parts) == 1 else " & ".join(map(grouped, parts))
    kinds = schema.get("type", [])
    made_by = {"array": list_of, "object": object_of}
    names = [kind for kind in (kinds if isinstance(kinds, list) else [kinds]) if kind != "null"]
    if not names:
        return "" if kinds else "unknown"
    return union(made_by[kind](schema) if kind in made_by else TYPES[kind] for kind in names)


def comment(text, indent=""):
    return f"{indent}/** {text.replace('*/', '* /')} */\n" if text else ""


def fields(schema):
    """Name, type and description of the fields of a body."""
    for name, about in schema["properties"].items():
        foreign = "." in name or is_foreign(about) or about["description"].startswith("another name of")
        if not foreign and name != "stream" and typed(about):  # each method has its own `stream`
            yield f"{name}{'' if name in schema.get('required', []) else '?'}", typed(about), about["description"]


def interface(name, schema, others):
    """A body. It extends the one of `others`, (name, schema), whose fields it has, all with these types, and then tells what it adds."""
    def forms(body):
        return {(field, kind) for field, kind, _ in fields(body)}

    base, inherited = next(((other, list(fields(body))) for other, body in others if forms(body) < forms(schema)), ("", []))
    members = "".join(comment(about, "  ") + f"  {field}: {kind};\n" for field, kind, about in fields(schema) if (field, kind, about) not in inherited)
    return f"export interface {name}{f' extends {base}' if base else ''} {{\n{members}}}\n"


def named(texts, shared):
    """The shared types that texts name, and those that these name."""
    found, waiting = {}, list(texts)
    while waiting:
        code = re.sub(r"/\*\*.*?\*/|\"[^\"]*\"", "", waiting.pop())
        for name in set(re.findall(r"\w+", code)) & (set(shared) - set(found)):
            found[name] = comment(shared[name].get("description", "")) + f"export type {name} = {typed(shared[name])};\n"
            waiting.append(found[name])
    return [found[name] for name in sorted(found)]


def made(document):
    bodies, texts = [], []
    for name, path in BODIES.items():
        schema = document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
        forms = schema.get("anyOf", [schema])
        names = [name] if len(forms) == 1 else [f"{name}{index}" for index in range(1, len(forms) + 1)]
        texts += [interface(*one, bodies) for one in zip(names, forms)]
        bodies += zip(names, forms)
        if len(forms) > 1:
            texts.append(f"export type {name} = {' | '.join(names)};\n")
    return "\n".join([HEAD, *texts, *named(texts, document["components"]["schemas"])])


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    rows = json.loads(subprocess.run([sys.argv[1], "help", "--json"], check=True, capture_output=True).stdout)
    text = made(rows["openapi"])
    if len(sys.argv) == 2:
        OUT.write_text(text, encoding="utf-8")
        return 0
    if OUT.read_text(encoding="utf-8") != text:
        print(f"{OUT.name}: it is not what the program says; run tools/dev tables", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
