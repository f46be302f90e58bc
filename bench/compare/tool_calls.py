#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do drafts change calls of tools? Elsewhere a third of the calls were right with speculation, nine tenths without.

  tool_calls.py --foretoken build/release/foretoken --bundled models [--calls 100]

For each form in which models write calls, a server of the bundled model is asked for so many calls, plainly and with each drafter, at temperatures 0, 0.5
and 1, with the strategy that gives the text of plain decoding. A row shows how many calls were the plain ones, and how many were allowed by their tool's
schema. Exit code 1 unless all were. Needs python3-jsonschema.
"""
import argparse
import json
import os
import sys
import tempfile

import jsonschema

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "server"))
from server_testing import Server

SCHEMAS = {
    "weather": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}, "unit": {"type": "string", "enum": ["C", "F"]}}, "required": ["city", "unit"]},
    "now": {"type": "object", "additionalProperties": False},
    "add": {"type": "object", "properties": {"n": {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 3}}, "required": ["n"]},
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in SCHEMAS.items()]
CALLS = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}CALL{% endfor %}\n{% endfor %}{{ tools | tojson if tools }}"
TEMPLATES = {
    "no tools in the template": "{% for m in messages %}{{ m.content }}\n{% endfor %}",
    "hermes": CALLS.replace("CALL", "<tool_call>\n{{ c.function | tojson }}\n</tool_call>"),
    "qwen-coder": CALLS.replace("CALL", "<tool_call>\n<function={{ c.function.name }}>\n{% for k, v in c.function.arguments | items %}<parameter={{ k }}>\n{{ v }}\n"
                                        "</parameter>\n{% endfor %}</function>\n</tool_call>"),
    "llama": CALLS.replace("CALL", '{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}'),
    "nemotron": CALLS.replace("CALL", "<TOOLCALL>[{{ c.function | tojson }}]</TOOLCALL>"),
}


def drafters(bundled):
    drafts = {"draft model": "tales-1m-draft-q8_0.gguf", "EAGLE-3 head": "tales-9m-eagle-q8_0.gguf", "MTP head": "tales-9m-mtp-q8_0.gguf"}
    kinds = {name: ("-md", os.path.join(bundled, file)) for name, file in drafts.items()}
    return {**kinds, "n-grams": ("--spec-type", "ngram"), "suffixes": ("--spec-type", "suffix"), "grammar": ("--spec-type", "grammar"), "self": ("--spec-type", "self")}


def calls_of(server, n):
    found = []
    for seed in range(n):
        body = {"messages": [{"role": "user", "content": "Is Rome warm?"}], "tools": TOOLS[seed % 2:], "tool_choice": "required", "parallel_tool_calls": False,
                "temperature": seed % 3 / 2, "seed": seed, "max_tokens": 120}
        choice = server.post("/v1/chat/completions", body)["choices"][0]
        found.append([call["function"] for call in choice["message"].get("tool_calls", [])])
    return found


def is_valid(calls):
    try:
        for call in calls:
            jsonschema.validate(json.loads(call["arguments"]), SCHEMAS[call["name"]])
    except (ValueError, KeyError, jsonschema.ValidationError):
        return False
    return len(calls) == 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foretoken", required=True)
    parser.add_argument("--bundled", required=True)
    parser.add_argument("--calls", type=int, default=100)
    a = parser.parse_args()
    target, good = os.path.join(a.bundled, "tales-9m-q8_0.gguf"), True
    print("| form | drafter | calls | as plainly | valid |\n|---|---|---|---|---|")
    for form, template in TEMPLATES.items():
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            file.write(template)
            file.flush()
            plain = None
            for name, flags in {"none": ("--spec-type", "none"), **drafters(a.bundled)}.items():
                fixed = ("--verify", "sample-match", "--lookahead", "fixed", "--num-speculative-tokens", "4") if plain else ()
                with Server(a.foretoken, "-m", target, "-t", "1", "-q", "--repack-cache", "off", "--chat-template-file", file.name, *flags, *fixed) as server:
                    calls = calls_of(server, a.calls)
                plain = plain or calls
                same, valid = sum(x == y for x, y in zip(calls, plain)), sum(map(is_valid, calls))
                good &= same == valid == a.calls
                print(f"| {form} | {name} | {a.calls} | {same} | {valid} |", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
