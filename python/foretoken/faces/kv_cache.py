# SPDX-License-Identifier: Apache-2.0
"""KVCache, as naive-speculate has it: what a model has read of one text.

Contract: a cache belongs to the first model that reads with it. Keys and values stay in the library; after `crop` they are those of a text that
never was longer.
"""
from typing import Any, Optional

from .refusal import refuse


class KVCache:
    """An empty cache."""

    def __init__(self) -> None:
        self._model: Any = None
        self._sequence: Optional[int] = None

    def sequence_of(self, model: Any) -> int:
        """Its sequence in a model, taken at the first call. Errors: INVALID_ARGUMENT (it is another model's)."""
        if self._sequence is None:
            self._model, self._sequence = model, model.take_sequence()
        if self._model is not model:
            refuse("kv_cache", "another model reads with it", "give each model a KVCache of its own")
        return self._sequence

    def update(self, kv_states: Any) -> None:
        """Is refused: the library computes keys and values."""
        refuse("kv_states", "keys and values are the library's", "let the model read the tokens: Scorer.score, Inferencer.prefill")

    def crop(self, num_tokens_crop: int) -> None:
        """Removes the latest tokens, [0, get_num_tokens()] of them. Errors: INVALID_ARGUMENT."""
        held = self.get_num_tokens()
        if not 0 <= num_tokens_crop <= held:
            refuse("num_tokens_crop", f"{num_tokens_crop} is not in [0, {held}]", "give a number of tokens that the cache holds")
        if num_tokens_crop:
            self._model.truncate(held - num_tokens_crop, self._sequence)

    def get_num_tokens(self) -> int:
        """How many tokens it holds."""
        return 0 if self._sequence is None else self._model.length(self._sequence)

    def close(self) -> None:
        """Empties it and gives its memory back to the model; it may be used again."""
        if self._sequence is not None:
            self._model.give_back(self._sequence)
        self._model = self._sequence = None
