# SPDX-License-Identifier: Apache-2.0
"""Drafter, as naive-speculate has it: drafts behind query tokens, with a cache of the caller.

Contract: the cache holds the query and all drafts but the last one afterwards.
"""
from typing import Any, NamedTuple

from .inferencer import Inferencer, SampleStrategy
from .kv_cache import KVCache
from .language_model import row_of
from .refusal import refuse


class DraftResult(NamedTuple):
    """token_ids: [1, drafts]. token_logits: [1, drafts, vocabulary], those that each was drawn from."""

    token_ids: Any
    token_logits: Any


class Drafter:
    """Drafts with an inferencer."""

    def __init__(self, inferencer: Inferencer):
        self.inferencer = inferencer

    def draft(self, query_token_ids: Any, kv_cache: KVCache, num_draft_tokens: int, sample_strategy: SampleStrategy) -> DraftResult:
        """At most num_draft_tokens drafts, fewer where one of them ends the text. Errors: INVALID_ARGUMENT, TOO_LARGE."""
        if num_draft_tokens <= 0:
            refuse("num_draft_tokens", f"{num_draft_tokens} is not positive", "give at least 1")
        query = row_of(query_token_ids)
        if len(query) > 1:
            self.inferencer.language_model.forward([query[:-1]], kv_cache)
        found = self.inferencer.decode([query[-1:]], kv_cache, num_draft_tokens, sample_strategy)
        return DraftResult(found.token_ids, found.token_logits)
