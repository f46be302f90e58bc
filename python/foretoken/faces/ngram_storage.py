# SPDX-License-Identifier: Apache-2.0
"""NGramStorage and OneLevelNGramStorage, as romsto/Speculative-Decoding has them: what `ngram_assisted_speculative_generate` looks drafts up in.

Contract: the index is the library's, and counts each text of a model once. A storage keeps texts for each `Model` that it is used with, until
`reset` or the model is closed.
"""
import weakref
from typing import Any, Dict

from .model import Model
from .refusal import refuse


class INgramStorage:
    """Base. n: tokens of an n-gram: a draft follows from n - 1 of them, [2, 17]. vocab_size: has no effect, as no random tokens are drafted."""

    storage = ""

    def __init__(self, n: int, vocab_size: int):
        if n < 2:
            refuse("n", f"{n} is too small", "give at least 2")
        self.n, self.vocab_size = n, vocab_size
        self._models: "weakref.WeakSet[Model]" = weakref.WeakSet()

    def engine_options(self) -> Dict[str, Any]:
        """These settings as options of `Engine`."""
        return {"speculative_method": "ngram", "ngram_max": self.n - 1, "ngram_storage": self.storage, "ngram_keep": True}

    def used_by(self, model: Model) -> "INgramStorage":
        """Itself, which now knows of the model."""
        self._models.add(model)
        return self

    def reset(self) -> None:
        """Forgets all texts."""
        for model in list(self._models):
            model.forget(self)


class NGramStorage(INgramStorage):
    """Contexts of n - 1 tokens and fewer; the longest that is known wins."""

    storage = "multi-level"


class OneLevelNGramStorage(INgramStorage):
    """Contexts of n - 1 tokens alone."""

    storage = "single-level"
