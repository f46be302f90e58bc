#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/speculation.schema.json, the JSON Schema of files with settings of speculation, or checks it.

usage: settings_schema.py PROGRAM [--check]

PROGRAM is the built foretoken; `foretoken help --json` gives the settings. An editor then completes and checks such a
file: `# yaml-language-server: $schema=PATH` in its first line.
"""
import json
import pathlib
import subprocess
import sys

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "docs" / "speculation.schema.json"
# YAML reads yes and on as true; in JSON they stand as text.
SWITCH = {"enum": [True, False, "true", "false", "yes", "no", "on", "off"]}
ROW = {"type": "array", "prefixItems": [{"type": "integer", "minimum": 1, "maximum": 1024}, {"type": "integer", "minimum": 1, "maximum": 1024},
                                        {"type": "integer", "minimum": 0, "maximum": 64}], "minItems": 3, "maxItems": 3}


def number(row):
    kind = {"type": row["type"], "minimum": row["least"], "maximum": row["most"]}
    if row["type"] == "integer":
        kind.update(minimum=int(row["least"]), maximum=int(row["most"]))
    words = [word for word in row.get("words", []) if word != "null"]
    return {"anyOf": [kind, {"enum": [*words, None]}]} if words else kind


def methods(row):
    """Names, or draft files by name, alone, in a list or with commas."""
    words = [word for word in row["words"] if word != "null"]
    item = "|".join(words)
    one = f"({item})(:[^,]+)?"
    text = {"type": "string", "pattern": f"^{one}( *, *{one})*$"}
    return {"anyOf": [text, {"type": "array", "items": text, "minItems": 1}, {"type": "null"}]}


def value_of(row):
    if row["name"] == "speculative_method":
        return methods(row)
    if row["type"] in ("integer", "number"):
        return number(row)
    if row["type"] == "switch":
        return SWITCH
    if row["type"] == "name":
        words = [word for word in row["words"] if word != "null"]
        return {"enum": [*words, None]} if "null" in row["words"] else {"enum": words}
    if row["type"] == "table":
        return {"anyOf": [{"type": "array", "items": ROW}, {"type": "string"}, {"type": "null"}]}
    if row["type"] == "list":
        number_of_tokens = {"type": "integer", "minimum": 1, "maximum": 64}
        return {"anyOf": [{"type": "array", "items": number_of_tokens}, {"type": "string"}, {"type": "null"}]}
    if row["name"] == "draft_models":
        return {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
    return {"type": "string"}


def properties_of(rows):
    properties, nested = {}, {}
    for row in rows:
        properties[row["name"]] = {**value_of(row), "description": f"default: {row['default'] or 'none'}"}
        for name in row["aliases"]:
            outer, dot, inner = name.partition(".")
            place = nested.setdefault(outer, {}) if dot else properties
            place[inner or name] = {"$ref": f"#/$defs/settings/properties/{row['name']}"}
    for outer, inner in nested.items():
        properties[outer] = {"type": "object", "properties": inner, "additionalProperties": False}
    properties["dialect"] = {"const": "foretoken"}
    return properties


def schema_of(rows):
    section = {"type": "object", "properties": properties_of(rows), "additionalProperties": False}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "foretoken: settings of speculation (docs/configuration.md)",
        "description": "The section speculative_config of a YAML or JSON file, or a file of the settings alone. Files of other dialects have other keys.",
        "$defs": {"settings": section},
        "anyOf": [{"type": "object", "properties": {"speculative_config": {"$ref": "#/$defs/settings"}}, "required": ["speculative_config"]},
                  {"$ref": "#/$defs/settings"}],
    }


def main():
    rows = json.loads(subprocess.run([sys.argv[1], "help", "--json"], capture_output=True, text=True, check=True).stdout)["settings"]
    text = json.dumps(schema_of(rows), indent=1) + "\n"
    if sys.argv[2:] == ["--check"]:
        if not SCHEMA.is_file() or SCHEMA.read_text(encoding="utf-8") != text:
            sys.exit(f"{SCHEMA.name} is stale; run tools/dev tables")
    else:
        SCHEMA.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
