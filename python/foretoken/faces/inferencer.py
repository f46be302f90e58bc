# SPDX-License-Identifier: Apache-2.0
"""Inferencer, as naive-speculate has it: prefill and decode with a cache of the caller.

Contract: tokens are drawn by the library, with noise keyed by seed and position, so a call repeats its tokens.
"""
import enum
from typing import Any, Dict, List, NamedTuple, Tuple

from .. import _arrays
from ..verification import Verification
from .kv_cache import KVCache
from .language_model import LanguageModel, batch_of, row_of
from .refusal import refuse


class SampleStrategy(str, enum.Enum):
    """RANDOM draws from the model's distribution, GREEDY takes its most probable token."""

    RANDOM = "random"
    GREEDY = "greedy"


class PrefillOutput(NamedTuple):
    """token_ids: [1, 1]. token_logits: [1, tokens read, vocabulary]."""

    token_ids: Any
    token_logits: Any


class DecodeOutput(NamedTuple):
    """token_ids: [1, new tokens]. token_logits: [1, new tokens, vocabulary], those that each was drawn from."""

    token_ids: Any
    token_logits: Any


def ids_of(tokens: List[int]) -> Any:
    """Token ids as a batch of one row."""
    return batch_of(_arrays.shown(_arrays.tokens_in(tokens, "token_ids")))


class Inferencer:
    """Reads and continues a text with a model."""

    def __init__(self, language_model: LanguageModel, *, seed: int = 0):
        self.language_model, self._seed = language_model, seed
        self._samplers: Dict[Tuple[int, float], Verification] = {}

    def _draw(self, logits: Any, position: int, sample_strategy: SampleStrategy) -> int:
        temperature = 0.0 if SampleStrategy(sample_strategy) is SampleStrategy.GREEDY else 1.0
        key = (len(logits), temperature)
        if key not in self._samplers:
            self._samplers[key] = Verification(len(logits), temperature=temperature, seed=self._seed)
        return self._samplers[key].verify([logits], position=position).next

    def prefill(self, query_token_ids: Any, kv_cache: KVCache, sample_strategy: SampleStrategy) -> PrefillOutput:
        """Reads tokens and draws one behind them."""
        logits = self.language_model.forward(query_token_ids, kv_cache)
        token = self._draw(logits[0][-1], kv_cache.get_num_tokens(), sample_strategy)
        return PrefillOutput(ids_of([token]), logits)

    def decode(self, query_token_ids: Any, kv_cache: KVCache, max_new_tokens: int, sample_strategy: SampleStrategy) -> DecodeOutput:
        """Reads one token and continues it by at most max_new_tokens, up to and with an end token; the last one is not read."""
        if max_new_tokens <= 0:
            refuse("max_new_tokens", f"{max_new_tokens} is not positive", "give at least 1")
        query, tokens, rows = row_of(query_token_ids), [], []
        while len(tokens) < max_new_tokens and not self.language_model.eos_token_ids.intersection(tokens[-1:]):
            found = self.prefill([query], kv_cache, sample_strategy)
            query = [int(found.token_ids[0][0])]
            tokens += query
            rows.append(found.token_logits[0][-1])
        return DecodeOutput(ids_of(tokens), batch_of(_arrays.numpy.stack(rows) if _arrays.numpy is not None else rows))
