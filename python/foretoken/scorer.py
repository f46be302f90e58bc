# SPDX-License-Identifier: Apache-2.0
"""A model's logits for given tokens.

Contract: logits are float32 [tokens][vocabulary] that the caller keeps; row i predicts the token behind token i. A `Scorer` is used by one
thread at a time.
"""
import ctypes
from typing import Any, Optional, Sequence

from . import _arrays
from . import _library as lib
from .models import bundled_model
from .options import Kind, Options


class Scorer:
    """A model with a cache that the caller controls. model, options: as of `Engine`; nothing is drafted."""

    def __init__(self, model: Optional[Any] = None, **options: Any):
        made = Options(Kind.ENGINE, {"model": bundled_model() if model is None else model, **options})
        with made.use() as pointer:
            self._handle = lib.Handle(self, "scorer", lib.make("foretoken_scorer_open", pointer), "foretoken_scorer_close")

    def score(self, tokens: Sequence[int], sequence: int = 0) -> Any:
        """Continues a sequence, [0, max_sequences), with tokens. Errors, with nothing computed: INVALID_ARGUMENT, TOO_LARGE."""
        numbers = _arrays.tokens_in(tokens, "tokens")
        logits, vocabulary, stride = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        with self._handle.use() as pointer:
            lib.call("foretoken_scorer_score", pointer, sequence, _arrays.address(numbers), len(numbers), ctypes.byref(logits),
                     ctypes.byref(vocabulary), ctypes.byref(stride))
            rows = _arrays.copied(None, 0, "f")
            for row in range(len(numbers)):
                rows.extend(_arrays.copied((logits.value or 0) + 4 * stride.value * row, vocabulary.value, "f"))
        return _arrays.shown(rows, (len(numbers), vocabulary.value))

    def length(self, sequence: int = 0) -> int:
        """Tokens of a sequence in the cache; 0 if there is no such sequence."""
        with self._handle.use() as pointer:
            return lib.library().foretoken_scorer_length(pointer, sequence)

    def truncate(self, length: int, sequence: int = 0) -> None:
        """Removes the tokens of a sequence from `length` on. Errors: INVALID_ARGUMENT, TOO_LARGE (the sequence is empty then)."""
        with self._handle.use() as pointer:
            lib.call("foretoken_scorer_truncate", pointer, sequence, length)

    def close(self) -> None:
        """Frees the model; may be called again."""
        self._handle.close()

    def __enter__(self) -> "Scorer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
