# SPDX-License-Identifier: Apache-2.0
"""Whether two servers draw the likeliest tokens equally often: one number for all places and prompts, so that small faults add up.

Contract: pure functions. Which token is the likeliest at a place is decided by the draws of both servers together, so that neither is favoured.
It finds what makes texts sharper or flatter, and is blind to a fault that leaves the likeliest tokens as frequent as they were.
"""
import collections
import statistics

from .chi_square import NOTHING, Comparison, least_share, tail


def _sum(strata):
    """(the difference of the means, its variance, how much a full fault would add to a mean), over all prompts."""
    parts = []
    for a, b in strata:
        best = [collections.Counter(column).most_common(1)[0][0] for column in zip(*(a + b))]
        scores = [[sum(x == y for x, y in zip(outcome, best)) for outcome in side] for side in (a, b)]
        means = [statistics.fmean(side) for side in scores]
        variance = sum(statistics.variance(side, mean) / len(side) for side, mean in zip(scores, means))
        parts.append((means[0] - means[1], variance, len(best) - sum(means) / 2))
    return [sum(part[i] for part in parts) for i in range(3)]


def compare(strata):
    """[(outcomes, outcomes)] of independent prompts, each outcome a tuple of tokens; at least two of each server."""
    difference, variance, _ = _sum(strata)
    if variance == 0:
        return NOTHING
    statistic = difference ** 2 / variance
    return Comparison(statistic, 1, tail(statistic, 1))


def detectable(strata, level):
    """As chi_square.detectable."""
    _, variance, room = _sum(strata)
    return least_share(lambda share: (share * room) ** 2 / variance, 1, level) if variance else None
