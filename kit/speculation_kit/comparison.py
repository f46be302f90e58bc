# SPDX-License-Identifier: Apache-2.0
"""Two servers of one model, plain and speculative: what is asked of them, and the verdict.

Contract: `run` asks everything that a Plan names, in order, and gives a Result. The verdict is "exact" only if everything that was asked for
was shown, "different" where something differs, and otherwise "not shown".
"""
from typing import Any, List, NamedTuple, Optional

from . import distribution, exactness, speed
from .endpoint import Endpoint
from .errors import Refused
from .reply import Asked

WEAKEST = 0.2  # a test that finds only larger shares of wrong draws shows nothing


class Plan(NamedTuple):
    """kinds: "completions", "chat". seeds: of drawn texts. samples: texts that each server draws of a prompt where seeds do not decide; of the
    first sample_prompts prompts, with sample_tokens tokens. level: the probability of a false alarm. tolerance: of log-probabilities."""

    prompts: List[str]
    kinds: List[str]
    temperatures: List[float]
    seeds: List[int]
    max_tokens: int
    samples: int
    sample_prompts: int
    sample_tokens: int
    level: float
    tolerance: float
    speed_pairs: int
    parallel: int


class Result(NamedTuple):
    """level_each: of one test of the distribution. problems: why the verdict is not "exact". notes: what a reader should know."""

    plan: Plan
    endpoints: Any
    rows: List[exactness.Row]
    tests: List[distribution.Test]
    level_each: Optional[float]
    speeds: List[speed.Speed]
    verdict: str
    problems: List[str]
    notes: List[str]


def _gives_logprobs(endpoint: Endpoint, asked: Asked):
    """Whether the server gives log-probabilities. One that refuses them must answer without."""
    try:
        return bool(endpoint.complete(asked._replace(logprobs=True, max_tokens=1)).logprobs)
    except Refused as refused:
        if refused.status not in (400, 422):
            raise
        endpoint.complete(asked._replace(max_tokens=1))
        return False


class Runner:
    """Gathers what the servers answer."""

    def __init__(self, plain, speculative, plan, say):
        self.plain, self.speculative, self.plan, self.say = plain, speculative, plan, say
        self.rows, self.draws, self.speeds, self.notes = [], [], [], []
        self.drafted = None

    def run(self) -> Result:
        for kind in self.plan.kinds:
            self._kind(kind)
        tests, level = distribution.test_all(self.draws, self.plan.level)
        different, missing = self._different(tests, level), self._missing(tests)
        verdict = "different" if different else "not shown" if missing else "exact"
        return Result(self.plan, (self.plain, self.speculative), self.rows, tests, level, self.speeds, verdict, different or missing, self.notes)

    def _kind(self, kind):
        asked = Asked(kind, self.plan.prompts[0], 0.0, None, self.plan.max_tokens)
        logprobs = all([_gives_logprobs(endpoint, asked) for endpoint in (self.plain, self.speculative)])
        if not logprobs:
            self.notes.append(f"{kind}: not both servers give log-probabilities, so texts alone are compared")
        asked = asked._replace(logprobs=logprobs)
        for temperature in self.plan.temperatures:
            if temperature == 0:
                self._texts(asked)
            else:
                self._drawn(asked._replace(temperature=temperature))
        if self.plan.speed_pairs:
            self.say(f"{kind}: speed, {self.plan.speed_pairs} pairs")
            self.speeds.append(speed.measure(self.plain, self.speculative, self.plan.prompts,
                                             asked._replace(temperature=self.plan.temperatures[0], seed=1, logprobs=False), self.plan.speed_pairs))

    def _texts(self, asked):
        self.say(f"{asked.kind}: texts of temperature {asked.temperature:g}" + ("" if asked.seed is None else f", seed {asked.seed}"))
        rows = exactness.compare_texts(self.plain, self.speculative, self.plan.prompts, asked, self.plan.tolerance)
        self.rows += rows
        for row in rows:
            if row.way != exactness.ALONE and row.drafted is not None:
                self.drafted = (self.drafted or 0) + row.drafted
        return rows

    def _drawn(self, asked):
        """Texts of each seed; where they differ, seeds do not decide, and the distributions are compared."""
        rows = [row for seed in self.plan.seeds for row in self._texts(asked._replace(seed=seed))]
        if rows and not any(row.differing for row in rows):
            return
        if rows:
            self.notes.append(f"{asked.kind}, temperature {asked.temperature:g}: the same seed gives the two servers different texts, "
                              "so their distributions are compared")
        for i, prompt in enumerate(self.plan.prompts[:self.plan.sample_prompts]):
            self.say(f"{asked.kind}: {self.plan.samples} texts of each server at temperature {asked.temperature:g}, prompt {i + 1}")
            one = asked._replace(prompt=prompt, max_tokens=self.plan.sample_tokens)
            draws = distribution.draw(self.plain, self.speculative, one, self.plan.samples, 1 + 2 * i * self.plan.samples, self.plan.parallel)
            if draws.drafted is not None:
                self.drafted = (self.drafted or 0) + draws.drafted
            self.draws.append(draws)

    def _different(self, tests, level):
        found = []
        for row in self.rows:
            if row.temperature == 0 and row.differing:
                found.append(f"{row.kind}: {row.differing} of {row.texts} texts of temperature 0 differ ({row.way})")
        failed = [test for test in tests if test.comparison.p < level]
        if failed:
            worst = min(failed, key=lambda test: test.comparison.p)
            found.append(f"{len(failed)} of {len(tests)} tests find another distribution; the clearest: {worst.kind}, temperature "
                         f"{worst.temperature:g}, {worst.what}, p = {worst.comparison.p:.2g}")
        return found

    def _missing(self, tests):
        found = []
        if self.drafted == 0:
            found.append("the speculative server drafted nothing, so nothing was shown")
        for kind, temperature in sorted({(test.kind, test.temperature) for test in tests}):
            shares = [test.detectable for test in tests if (test.kind, test.temperature) == (kind, temperature)]
            if min((share for share in shares if share is not None), default=1.0) > WEAKEST:
                found.append(f"{kind}, temperature {temperature:g}: too few different draws to tell distributions apart; give more --samples or "
                             "other prompts")
        return found


def run(plain: Endpoint, speculative: Endpoint, plan: Plan, say=lambda line: None) -> Result:
    """say: is told what is done next."""
    return Runner(plain, speculative, plan, say).run()
