# SPDX-License-Identifier: Apache-2.0
"""Implementations with the mistakes of tests/vectors/make_vectors.py, as functions of the kit: `mistakes.py:NAME`."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vectors"))
import make_vectors  # noqa: E402


def _function(strategy, rule):
    def answer(case):
        chosen = rule if case["strategy"] == strategy and not case["settings"] else make_vectors.RULES[case["strategy"]]
        accepted, token = chosen(make_vectors.Round(case))
        return case["drafts"][:accepted] + [token]
    return answer


NAMES = [rule.__name__ for _, rule in make_vectors.MISTAKES]
globals().update({rule.__name__: _function(strategy, rule) for strategy, rule in make_vectors.MISTAKES})
no_mistake = _function(None, None)


def answers_nothing(case):
    return None


def raises(case):
    raise LookupError("mine")


def gives_text(case):
    return "1"
