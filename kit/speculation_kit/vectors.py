# SPDX-License-Identifier: Apache-2.0
"""The rounds of verification.jsonl (docs/verification-vectors.md), and what an implementation makes of them.

Contract: `read` gives rounds whose drafts and expected tokens are checked; the other fields are handed on as they are.
"""
import operator
import os
import pkgutil
from typing import Any, List, NamedTuple

from .errors import KitError
from .json_input import is_list_of, is_whole, objects, read_text

FILE = "verification.jsonl"
HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = [os.path.join(HERE, "..", "..", folder, FILE) for folder in (os.path.join("tests", "vectors"), "vectors")]  # a source tree; installed


class Outcome(NamedTuple):
    """What was made of a round. verdict: "right", "wrong" or "left out". why: of a wrong one."""

    name: str
    strategy: str
    verdict: str
    expected: List[int]
    why: str


def _own_text():
    """(the vectors that come with the kit, where they are)"""
    try:
        data = pkgutil.get_data(__package__, FILE)  # within the package, be it a folder or an archive
    except OSError:
        data = None
    if data is not None:
        return data.decode(), FILE
    for path in PLACES:
        if os.path.exists(path):
            return read_text(path), path
    raise KitError(f"{FILE}: not beside the kit; name the file behind --vectors")


def _check(place, case):
    drafts, expected = case.get("drafts"), case.get("expected")
    fits = (isinstance(case.get("name"), str) and isinstance(case.get("strategy"), str) and is_list_of(drafts, is_whole)
            and isinstance(expected, dict) and is_whole(expected.get("accepted")) and is_whole(expected.get("next"))
            and 0 <= expected["accepted"] <= len(drafts))
    if not fits:
        raise KitError(f"{place}: no round with name, strategy, drafts and expected; take the file as it is published")


def read(path=None):
    """The rounds of a file; without one, those that come with the kit."""
    text, where = (read_text(path), path) if path else _own_text()
    rounds = []
    for place, case in objects(text, where):
        _check(place, case)
        rounds.append(case)
    if not rounds:
        raise KitError(f"{where}: no rounds; take the file as it is published")
    return rounds


def expected_tokens(case):
    return case["drafts"][:case["expected"]["accepted"]] + [case["expected"]["next"]]


def question(case):
    """What an implementation is told: everything but the result."""
    return {name: value for name, value in case.items() if name != "expected"}


def _tokens(answer):
    """A list of whole numbers, or None if it is not one."""
    if isinstance(answer, (str, bytes, dict)):
        return None
    try:
        return [operator.index(token) for token in answer if not isinstance(token, bool)]
    except TypeError:
        return None


def outcome(case, answer: Any):
    """The outcome of a round that was answered; an answer that is an exception is wrong, and None leaves the round out."""
    expected, about = expected_tokens(case), (case["name"], case["strategy"])
    if answer is None:
        return Outcome(*about, "left out", expected, "")
    if isinstance(answer, Exception):
        return Outcome(*about, "wrong", expected, f"{type(answer).__name__}: {answer}"[:200])
    tokens = _tokens(answer)
    if tokens == expected:
        return Outcome(*about, "right", expected, "")
    return Outcome(*about, "wrong", expected, f"{tokens if tokens is not None else 'no list of tokens: ' + repr(answer)}"[:200])
