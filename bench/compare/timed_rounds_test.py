#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs that chose the same lengths are equal by their rounds, however slow a machine was; and what they chose makes the difference that the table says."""
import json
import os
import tempfile

import timed_rounds

PASS_US, DRAFT_US, READ_US = {1: 100, 3: 160}, 20, 5
PLAIN_US = 80


def a_run(path, asked, slow=1):
    """A trace of a plain request and of one that asks for so many drafts a round, all accepted."""
    missed = 8
    with open(path, "w", encoding="utf-8") as file:
        def write(**line):
            file.write(json.dumps(line) + "\n")
        write(foretoken_trace=2, method="none")
        write(request=0, method="none")
        write(request=1, method="eagle")
        for request in (0, 1):
            write(**{"pass": 0}, of=request, prefill=True, fed=8, rows=8, asked=0, committed=1, draft_us=0, verify_us=900, rest_us=1)
        write(**{"pass": 1}, of=0, prefill=False, fed=1, rows=1, asked=0, committed=1, draft_us=0, verify_us=slow * PLAIN_US, rest_us=1)
        for number, drafts in enumerate(asked):
            write(**{"pass": number + 2}, of=1, prefill=False, fed=1 + drafts, rows=1 + drafts, asked=drafts, committed=1 + drafts,
                  draft_us=slow * (DRAFT_US + READ_US * missed) if drafts else 0, verify_us=slow * PASS_US[1 + drafts], rest_us=0)
            missed = 0 if drafts else missed + 1
    return timed_rounds.rounds(path)


with tempfile.TemporaryDirectory() as folder:
    trace = os.path.join(folder, "trace.jsonl")
    drafting = a_run(trace, [2] * 9)
    slowed = a_run(trace, [2] * 9, slow=3)
    resting = a_run(trace, [0] * 8 + [2])
    plain = a_run(trace, [0] * 9)

assert len(drafting) == 9 and drafting[0]["missed"] == 8 and drafting[1]["missed"] == 0 and resting[8]["missed"] == 16
near = lambda a, b: abs(a - b) < 1e-9 * b
times = timed_rounds.Times(drafting + slowed + resting + plain)
assert times.passes.keys() == PASS_US.keys() and all(near(times.passes[rows] * PLAIN_US, us) for rows, us in PASS_US.items()), vars(times)
assert times.drafts.keys() == {2} and near(times.drafts[2] * PLAIN_US, DRAFT_US) and near(times.read * PLAIN_US, READ_US), vars(times)
assert near(times.speedup(drafting), 27 * 100 / (9 * 160 + 9 * 20 + 8 * 5)) and near(times.speedup(slowed), times.speedup(drafting))
assert near(times.speedup(plain), 1)
assert near(times.speedup(resting), 11 * 100 / (8 * 100 + 160 + 20 + 16 * 5))
assert timed_rounds.expected_tokens(2, 0.5) == 1.75
assert near(times.speedup(drafting, 0.5), 9 * 1.75 * 100 / (9 * 160 + 9 * 20 + 8 * 5))
print("timed rounds: a slow machine changes nothing, chosen lengths do")
