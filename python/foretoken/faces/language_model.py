# SPDX-License-Identifier: Apache-2.0
"""LanguageModel, as naive-speculate has it: a model that reads tokens behind what a cache holds, and gives their logits.

Contract: a batch has one row. The model's memory for texts is divided among `KVCache` objects, at most max_sequences of them at a time.
"""
from typing import Any, List, Optional, Sequence

from .. import _arrays
from .. import scorer as scorers
from ..engine import Path
from .kv_cache import KVCache
from .refusal import refuse


def row_of(query_token_ids: Any) -> List[int]:
    """The tokens of a batch of one row, [1, tokens]. Errors: INVALID_ARGUMENT."""
    rows = query_token_ids.tolist() if hasattr(query_token_ids, "tolist") else query_token_ids
    if len(rows) != 1 or isinstance(rows[0], int) or not len(rows[0]):
        refuse("query_token_ids", "its shape is not [1, tokens]", "give one row with at least one token; other texts have a KVCache of their own")
    return [int(token) for token in rows[0]]


def batch_of(row: Any) -> Any:
    """A batch with this one row."""
    return row[None] if _arrays.numpy is not None else [row]


class LanguageModel:
    """model: a GGUF file; None: the bundled model. options: of the kind "engine", such as threads. eos_token_ids: tokens that end a text."""

    def __init__(self, model: Optional[Path] = None, *, eos_token_ids: Sequence[int] = (), max_sequences: int = 1, **options: Any):
        self._scorer = scorers.Scorer(model, max_sequences=max_sequences, **options)
        self.eos_token_ids = frozenset(eos_token_ids)
        self._free = list(range(max_sequences))[::-1]

    def forward(self, query_token_ids: Any, kv_cache: KVCache) -> Any:
        """Logits, float32 [1, tokens, vocabulary], of tokens behind those of the cache, which then holds them too."""
        return batch_of(self._scorer.score(row_of(query_token_ids), kv_cache.sequence_of(self)))

    def take_sequence(self) -> int:
        """A free sequence, for `KVCache`."""
        if not self._free:
            refuse("kv_cache", "the model has no sequence left for one more", "close a KVCache, or give LanguageModel a larger max_sequences")
        return self._free.pop()

    def length(self, sequence: int) -> int:
        """Tokens that a sequence holds."""
        return self._scorer.length(sequence)

    def truncate(self, length: int, sequence: int) -> None:
        """Removes the tokens of a sequence from `length` on."""
        self._scorer.truncate(length, sequence)

    def give_back(self, sequence: int) -> None:
        """Empties a sequence and takes it back."""
        if self._scorer.length(sequence):
            self._scorer.truncate(0, sequence)
        self._free.append(sequence)

    def close(self) -> None:
        """Frees the model; may be called again."""
        self._scorer.close()

    def __enter__(self) -> "LanguageModel":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
