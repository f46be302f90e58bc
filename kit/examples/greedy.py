# SPDX-License-Identifier: Apache-2.0
"""The smallest implementation: the rule of temperature 0, without penalties. Other rounds are answered with null.

As a function: python3 -m speculation_kit vectors --function examples/greedy.py:answer
As a command:  python3 -m speculation_kit vectors --command 'python3 examples/greedy.py'
"""
import json
import sys


def answer(case):
    """The accepted drafts and the token after them."""
    if case["strategy"] != "greedy" or set(case["sampling"]) != {"temperature"}:
        return None
    tokens = []
    for i, row in enumerate(case["target_logits"]):
        best = row.index(max(row, key=lambda x: float("-inf") if x is None else x))
        tokens.append(best)
        if i == len(case["drafts"]) or best != case["drafts"][i]:
            return tokens


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))))
