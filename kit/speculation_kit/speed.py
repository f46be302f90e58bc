# SPDX-License-Identifier: Apache-2.0
"""How fast two servers answer: the same requests in turn, and the ratio of each pair.

Contract: requests are streamed, one at a time; every second pair asks the speculative server first, so that a machine that becomes slower or faster
meanwhile favours neither. One pair beforehand is not counted. Tokens are those of the reply's `usage`.
"""
import math
import statistics
from typing import Any, Dict, List, NamedTuple, Optional

from .errors import KitError

CONFIDENCE = 0.95


class Timing(NamedTuple):
    """A reply's tokens per second, from the request to the end, and seconds to the first text."""

    rate: float
    first_s: float


class Summary(NamedTuple):
    """The median and the quartiles."""

    median: float
    lower: float
    upper: float


class Speed(NamedTuple):
    """pairs: (plain, speculative). interval: of the median ratio, with probability CONFIDENCE; None for fewer than 6 pairs."""

    kind: str
    temperature: float
    pairs: List[Any]
    rates: Dict[str, Summary]
    first_s: Dict[str, Summary]
    ratio: Summary
    interval: Optional[Any]

    def as_json(self):
        return {"endpoint": self.kind, "temperature": self.temperature, "pairs": len(self.pairs),
                "tokens_per_s": {side: value._asdict() for side, value in self.rates.items()},
                "first_token_s": {side: value._asdict() for side, value in self.first_s.items()},
                "ratio": self.ratio._asdict(), "ratio_interval": list(self.interval) if self.interval else None, "confidence": CONFIDENCE}


def summary(values):
    quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
    return Summary(statistics.median(values), quartiles[0], quartiles[2])


def median_interval(values):
    """Bounds that hold the median with probability CONFIDENCE, whatever the distribution: two of the sorted values. None for too few."""
    n, ordered = len(values), sorted(values)
    outside, k = 0.0, 0  # the probability that fewer than k values lie below the median, on both sides
    while True:
        more = outside + 2 * math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2))
        if more > 1 - CONFIDENCE:
            break
        outside, k = more, k + 1
    return (ordered[k - 1], ordered[n - k]) if k > 0 else None


def _timing(endpoint, asked):
    reply = endpoint.stream(asked)
    if not reply.completion_tokens or reply.first_s is None or not reply.total_s:
        raise KitError(f"{endpoint.url}: a streamed reply without text or `usage`; the speed cannot be told: give --speed-pairs 0")
    return Timing(reply.completion_tokens / reply.total_s, reply.first_s)


def measure(plain, speculative, prompts, asked, n_pairs) -> Speed:
    """asked: a request whose prompt is replaced by each of the prompts in turn."""
    pairs = []
    for i in range(-1, n_pairs):
        one = asked._replace(prompt=prompts[i % len(prompts)])
        if i % 2 == 0:
            first, second = _timing(plain, one), _timing(speculative, one)
        else:
            second, first = _timing(speculative, one), _timing(plain, one)
        if i >= 0:
            pairs.append((first, second))
    ratios = [b.rate / a.rate for a, b in pairs]
    sides = {"plain": [a for a, _ in pairs], "speculative": [b for _, b in pairs]}
    return Speed(asked.kind, asked.temperature, pairs, {side: summary([t.rate for t in all_of]) for side, all_of in sides.items()},
                 {side: summary([t.first_s for t in all_of]) for side, all_of in sides.items()}, summary(ratios), median_interval(ratios))
