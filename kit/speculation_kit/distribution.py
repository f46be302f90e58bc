# SPDX-License-Identifier: Apache-2.0
"""Whether two servers draw texts from one distribution, where the same seed does not give the same text.

Contract: each prompt is asked again and again for a few tokens, and the tokens at each place are compared. The two servers never get the same seed,
since the test needs independent draws. The level of one test is that of the caller divided by the number of tests, so that all of them together
raise a false alarm with at most the caller's probability.
"""
import collections
import concurrent.futures
from typing import Any, Dict, List, NamedTuple, Optional

from . import chi_square, likeliest
from .chi_square import Comparison
from .reply import Asked

END = "\0end"  # a place behind the end of a text


class Test(NamedTuple):
    """One comparison over all prompts. what: "likeliest" (tokens, by their number), "token 2", or "text" where the servers tell no tokens.
    detectable: chi_square.detectable."""

    kind: str
    temperature: float
    what: str
    comparison: Comparison
    detectable: Optional[float]

    def as_json(self, level) -> Dict[str, Any]:
        return {"endpoint": self.kind, "temperature": self.temperature, "what": self.what, **self.comparison._asdict(),
                "detectable": self.detectable, "differs": self.comparison.p < level}


class Draws:
    """Texts of one prompt from both servers: {server: outcomes}, each outcome a tuple of tokens, or of the text alone."""

    def __init__(self, asked):
        self.asked, self.drafted = asked, None
        self.outcomes = {"plain": [], "speculative": []}

    def add(self, side, reply):
        n = self.asked.max_tokens
        self.outcomes[side].append(tuple((reply.tokens or []) + [END] * n)[:n] if self.asked.logprobs else (reply.text,))
        if side == "speculative" and reply.drafted is not None:
            self.drafted = (self.drafted or 0) + reply.drafted

    def whats(self):
        return [f"token {i + 1}" for i in range(self.asked.max_tokens)] if self.asked.logprobs else ["text"]


def draw(plain, speculative, asked: Asked, samples, first_seed, parallel) -> Draws:
    """So many texts of a prompt from each server, `parallel` requests at a time."""
    found = Draws(asked)
    seeds = {"plain": first_seed, "speculative": first_seed + samples}
    endpoints = {"plain": plain, "speculative": speculative}

    def one(job):
        side, i = job
        return side, endpoints[side].complete(asked._replace(seed=seeds[side] + i))
    jobs = [(side, i) for i in range(samples) for side in endpoints]
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        waiting = [pool.submit(one, job) for job in jobs]
        try:
            for done in waiting:
                found.add(*done.result())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def _counts(outcomes, place):
    return collections.Counter(outcome[place] for outcome in outcomes)


def _tests_of(group, level):
    """The tests of one endpoint and temperature."""
    asked = group[0].asked
    sides = [(draws.outcomes["plain"], draws.outcomes["speculative"]) for draws in group]
    yield Test(asked.kind, asked.temperature, "likeliest", likeliest.compare(sides), likeliest.detectable(sides, level))
    for place, what in enumerate(group[0].whats()):
        strata = [(_counts(a, place), _counts(b, place)) for a, b in sides]
        yield Test(asked.kind, asked.temperature, what, chi_square.compare(strata), chi_square.detectable(strata, level))


def test_all(all_draws: List[Draws], family_level):
    """(the tests, the level of each); the level is None where nothing was drawn."""
    groups = collections.defaultdict(list)
    for draws in all_draws:
        groups[draws.asked.kind, draws.asked.temperature].append(draws)
    n = sum(1 + len(group[0].whats()) for group in groups.values())
    level = family_level / n if n else None
    return [test for group in groups.values() for test in _tests_of(group, level)], level
