# SPDX-License-Identifier: Apache-2.0
"""Pearson's test whether two sets of counts come from one distribution, and how much it can find.

Contract: pure functions. Outcomes that both sets together have less than 20 times share a cell, so that sets of equal size are expected to
hold ten in each.
"""
import math
from typing import NamedTuple

LEAST_TOGETHER = 20
POWER = 0.95
PRECISION = 1e-14
MOST_TERMS = 100_000


class Comparison(NamedTuple):
    """degrees 0: one cell alone, so nothing was compared. p: of such a difference or a larger one, were the distribution one."""

    statistic: float
    degrees: int
    p: float


NOTHING = Comparison(0.0, 0, 1.0)


def tail(statistic, degrees):
    """The probability that a chi-square variable is at least so large: the upper incomplete gamma function Q(degrees / 2, statistic / 2)."""
    if statistic <= 0:
        return 1.0
    a, x = degrees / 2, statistic / 2
    scale = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:  # the lower function by its series
        term = total = 1 / a
        n = a
        while term > total * PRECISION:
            n += 1
            term *= x / n
            total += term
        return max(0.0, 1 - scale * total)
    return scale * _fraction(a, x)


def _fraction(a, x):
    """The continued fraction of Q(a, x) / (x^a e^-x / Gamma(a)), from the front (Lentz)."""
    b = x + 1 - a
    c, d = math.inf, 1 / b
    value = d
    for n in range(1, MOST_TERMS):
        step = n * (a - n)
        b += 2
        d = 1 / (b + step * d)
        c = b + step / c
        value *= c * d
        if abs(c * d - 1) < PRECISION:
            break
    return value


def _least(holds, low, high):
    """The least number between low and high where `holds` begins to hold."""
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def critical_value(degrees, level):
    """The statistic whose tail is the level."""
    high = 2.0 * degrees + 100
    while tail(high, degrees) > level:
        high *= 2
    return _least(lambda x: tail(x, degrees) <= level, 0.0, high)


def power(noncentrality, degrees, critical):
    """The probability that the statistic reaches a value if the distributions differ by that much: a mixture of central ones, with Poisson's
    weights."""
    half, found = noncentrality / 2, 0.0
    if half == 0:
        return tail(critical, degrees)
    middle, width = int(half), int(8 * math.sqrt(half) + 20)
    for j in range(max(0, middle - width), middle + width):
        found += math.exp(j * math.log(half) - half - math.lgamma(j + 1)) * tail(critical, degrees + 2 * j)
    return found


def least_share(noncentrality, degrees, level):
    """The least share s in [0, 1] for which a difference of noncentrality(s) is found with probability POWER; None if 1 is too little."""
    critical = critical_value(degrees, level)
    high = critical + degrees + 100.0
    while power(high, degrees, critical) < POWER:
        high *= 2
    needed = _least(lambda x: power(x, degrees, critical) >= POWER, 0.0, high)
    return _least(lambda share: noncentrality(share) >= needed, 0.0, 1.0) if noncentrality(1.0) >= needed else None


def _cells(a, b):
    cells, rest = [], [0, 0]
    for outcome in sorted(set(a) | set(b), key=repr):
        pair = [a.get(outcome, 0), b.get(outcome, 0)]
        if sum(pair) >= LEAST_TOGETHER:
            cells.append(pair)
        else:
            rest = [rest[0] + pair[0], rest[1] + pair[1]]
    if sum(rest) >= LEAST_TOGETHER or not cells:
        return cells + [rest]
    cells[-1] = [cells[-1][0] + rest[0], cells[-1][1] + rest[1]]  # too few even together: any cell may take them
    return cells


def _statistic(cells):
    n_a, n_b = (sum(cell[i] for cell in cells) for i in (0, 1))
    return sum((n_b * x - n_a * y) ** 2 / (n_a * n_b * (x + y)) for x, y in cells)


def _distance(cells, share):
    """The noncentrality where the likeliest outcome stands in place of that share of the second set's draws."""
    n_a, n_b = (sum(cell[i] for cell in cells) for i in (0, 1))
    p = [sum(cell) / (n_a + n_b) for cell in cells]
    best = max(range(len(p)), key=p.__getitem__)
    q = [(1 - share) * x + share * (i == best) for i, x in enumerate(p)]
    return n_a * n_b * sum((x - y) ** 2 / (n_a * x + n_b * y) for x, y in zip(p, q))


def _tables(strata):
    return [cells for cells in (_cells(a, b) for a, b in strata if sum(a.values()) and sum(b.values())) if len(cells) > 1]


def _degrees(tables):
    return sum(len(cells) - 1 for cells in tables)


def compare(strata):
    """Compares counts by outcome, in several strata that are independent of each other: [(counts, counts)]."""
    tables = _tables(strata)
    if not tables:
        return NOTHING
    statistic = sum(_statistic(cells) for cells in tables)
    return Comparison(statistic, _degrees(tables), tail(statistic, _degrees(tables)))


def detectable(strata, level):
    """The least share of draws in which the likeliest outcome may stand in place of a draw for a test of that level to find it with a probability
    of about POWER; None if it would not even find 1."""
    tables = _tables(strata)
    return least_share(lambda share: sum(_distance(cells, share) for cells in tables), _degrees(tables), level) if tables else None
