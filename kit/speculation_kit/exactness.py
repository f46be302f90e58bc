# SPDX-License-Identifier: Apache-2.0
"""Texts of two servers side by side: those of temperature 0, and drawn ones of a seed.

Contract: a Row compares one way of asking with plain decoding's whole replies. Its texts, tokens and lengths must be equal; log-probabilities may
differ by what the caller allows, since engines that compute several rows together round differently.
"""
from typing import Any, Dict, List, NamedTuple, Optional

from .endpoint import Endpoint
from .reply import Asked

ALONE, SPECULATIVE, STREAMED = "plain, streamed", "speculative", "speculative, streamed"


class Difference(NamedTuple):
    """The first place where a text differs. what: "token", "text", "length" or "log-probability". plain, other: what stands there.
    gap: how much likelier plain decoding's token was than the other one, by plain decoding; None if unknown. A tiny one is a tie that rounding
    decides."""

    prompt: str
    what: str
    position: int
    plain: str
    other: str
    gap: Optional[float]


class Row:
    """way: ALONE, SPECULATIVE or STREAMED. largest: the largest difference of log-probabilities, None where none were given."""

    def __init__(self, kind, temperature, seed, way):
        self.kind, self.temperature, self.seed, self.way = kind, temperature, seed, way
        self.texts = self.differing = self.tokens = 0
        self.largest: Optional[float] = None
        self.first: Optional[Difference] = None
        self.drafted: Optional[int] = None
        self.accepted = 0

    def add(self, prompt, plain, other, tolerance):
        self.texts += 1
        self.tokens += len(other.tokens or []) or other.completion_tokens or 0
        if other.drafted is not None:
            self.drafted, self.accepted = (self.drafted or 0) + other.drafted, self.accepted + other.accepted
        largest = largest_difference(plain, other)
        if largest is not None:
            self.largest = max(self.largest or 0.0, largest)
        difference = first_difference(prompt, plain, other, tolerance)
        if difference:
            self.differing += 1
            self.first = self.first or difference

    def as_json(self) -> Dict[str, Any]:
        return {"endpoint": self.kind, "temperature": self.temperature, "seed": self.seed, "way": self.way, "texts": self.texts,
                "tokens": self.tokens, "differing": self.differing, "largest_logprob_difference": self.largest, "drafted": self.drafted,
                "accepted": self.accepted if self.drafted is not None else None, "first_difference": self.first._asdict() if self.first else None}


def _shared(plain, other):
    """How many tokens stand in both, one after another, and are equal."""
    a, b = plain.tokens or [], other.tokens or []
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def largest_difference(plain, other):
    """Of the log-probabilities of the tokens that both texts begin with; None where there are none."""
    pairs = [(x, y) for x, y in zip(plain.logprobs[:_shared(plain, other)], other.logprobs) if x is not None and y is not None]
    return max((abs(x - y) for x, y in pairs), default=None)


def first_difference(prompt, plain, other, tolerance):
    """None if there is none."""
    a, b = plain.tokens, other.tokens
    n = _shared(plain, other)
    for i, (x, y) in enumerate(zip(plain.logprobs[:n], other.logprobs)):
        if x is not None and y is not None and abs(x - y) > tolerance:
            return Difference(prompt, "log-probability", i, f"{x!r}", f"{y!r}", None)
    if a and b and a != b:
        if n == min(len(a), len(b)):
            return Difference(prompt, "length", n, f"{len(a)} tokens", f"{len(b)} tokens", None)
        return Difference(prompt, "token", n, repr(a[n]), repr(b[n]), _gap(plain, n, b[n]))
    if plain.text != other.text:
        i = next((i for i, (x, y) in enumerate(zip(plain.text, other.text)) if x != y), min(len(plain.text), len(other.text)))
        return Difference(prompt, "text", i, repr(plain.text[i:i + 20]), repr(other.text[i:i + 20]), None)
    if plain.finish != other.finish:
        return Difference(prompt, "length", n, f"ends by {plain.finish}", f"ends by {other.finish}", None)
    return None


def _gap(plain, i, token):
    if i >= len(plain.tops) or i >= len(plain.logprobs) or plain.logprobs[i] is None or token not in plain.tops[i]:
        return None
    return plain.logprobs[i] - plain.tops[i][token]


def compare_texts(plain: Endpoint, speculative: Endpoint, prompts, asked: Asked, tolerance) -> List[Row]:
    """The rows of one temperature and seed; `asked` is a request whose prompt is replaced by each of them."""
    rows = {way: Row(asked.kind, asked.temperature, asked.seed, way) for way in (ALONE, SPECULATIVE, STREAMED)}
    for prompt in prompts:
        one = asked._replace(prompt=prompt)
        whole = plain.complete(one)
        for way, reply in ((ALONE, plain.stream(one)), (SPECULATIVE, speculative.complete(one)), (STREAMED, speculative.stream(one))):
            rows[way].add(prompt, whole, reply, tolerance)
    return list(rows.values())
