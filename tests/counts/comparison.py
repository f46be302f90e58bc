# SPDX-License-Identifier: Apache-2.0
"""Instruction counts of kernels: those measured against those expected."""

TOLERANCE = 0.05
UPDATE = "run again with --update"


def complaints(isa, expected, measured):
    """One line for each kernel of the table `isa` whose count is off, or that only one side knows."""
    lines = []
    for name in sorted(expected.keys() | measured.keys()):
        if name not in measured:
            lines.append(f"{isa}: {name}: expected, and not measured; if it went away for good, {UPDATE}")
        elif name not in expected:
            lines.append(f"{isa}: {name}: measured, and not expected; if it is new, {UPDATE}")
        else:
            line = _complaint(expected[name], measured[name])
            if line:
                lines.append(f"{isa}: {name}: {line}")
    return lines


def _complaint(expected, measured):
    change = measured / expected - 1
    if abs(change) <= TOLERANCE:
        return None
    numbers = f"{measured} instructions in place of {expected} ({change:+.1%})"
    if change < 0:
        return f"{numbers}; a gain, if no work is left out: lower the number, {UPDATE}"
    return f"{numbers}; find out what became slower, or, if it is worth that, {UPDATE}"
