# SPDX-License-Identifier: Apache-2.0
"""Scorer, as naive-speculate has it: the logits of given tokens, with a cache of the caller.

Contract: the logits at position i predict the token at position i + 1. `foretoken.Scorer` does the work.
"""
from typing import Any, NamedTuple

from .kv_cache import KVCache
from .language_model import LanguageModel


class ScoreResult(NamedTuple):
    """token_logits: float32 [1, tokens, vocabulary]."""

    token_logits: Any


class Scorer:
    """Scores with a model."""

    def __init__(self, language_model: LanguageModel):
        self.language_model = language_model

    def score(self, query_token_ids: Any, kv_cache: KVCache) -> ScoreResult:
        """The logits of tokens behind those of the cache, which then holds them too. Errors: INVALID_ARGUMENT, TOO_LARGE."""
        return ScoreResult(self.language_model.forward(query_token_ids, kv_cache))
