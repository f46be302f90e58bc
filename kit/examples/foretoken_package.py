# SPDX-License-Identifier: Apache-2.0
"""foretoken's own rules, by its Python package (docs/python.md), as a function and as a command.

python3 -m speculation_kit vectors --function examples/foretoken_package.py:answer
"""
import json
import sys

import foretoken


def _rows(rows):
    return [[float("-inf") if x is None else x for x in row] for row in rows]


def answer(case):
    """The accepted drafts and the token after them."""
    rule = foretoken.Verification(len(case["target_logits"][0]), strategy=case["strategy"], **case["settings"], **case["sampling"])
    named = {field: _rows(case[field]) for field in ("draft_probabilities", "draft_logits") if field in case}
    found = rule.verify(_rows(case["target_logits"]), case["drafts"], text=case["text"], generated=case["generated"], **named, **case["uniforms"])
    return case["drafts"][:found.accepted] + [found.next]


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))))
