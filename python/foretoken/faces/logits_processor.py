# SPDX-License-Identifier: Apache-2.0
"""How `speculative_generate` draws tokens: Greedy, Multinomial, TopK, Nucleus, TopKNucleus.

Contract: a processor is translated to sampling options of a request. The library's order holds: top-k and top-p follow the temperature. A
subclass may override `_process`, which edits the logits of one token before the temperature; drawing itself stays the library's.
"""
from typing import Any, Dict, List

from .refusal import refuse


class LogitsProcessor:
    """Base. temperature: divides the logits."""

    def __init__(self, temperature: float = 1.0):
        self.temperature = temperature

    def _process(self, logits: Any) -> Any:
        """Edits logits, float32 [vocabulary], in place or returns others; a pure function of them."""
        return logits

    def request_options(self) -> Dict[str, Any]:
        """The options of a request that draws so."""
        return {"temperature": self.temperature}

    def processors(self) -> List[Any]:
        """The functions that edit logits: `_process`, where a subclass has one. Errors: INVALID_ARGUMENT (a subclass that draws itself)."""
        for name in ("sample", "__call__"):
            if any(name in kind.__dict__ for kind in type(self).__mro__):
                refuse("logits_processor", f"{type(self).__name__} has {name}, and tokens are drawn by the library", "override _process alone")
        return [] if type(self)._process is LogitsProcessor._process else [lambda text, logits: self._process(logits)]


class GreedyProcessor(LogitsProcessor):
    """The most probable token; the temperature changes nothing."""

    def request_options(self) -> Dict[str, Any]:
        return {"temperature": 0.0}


class MultinomialProcessor(LogitsProcessor):
    """Draws from the whole distribution."""


class TopKProcessor(MultinomialProcessor):
    """Draws from the top_k most probable tokens."""

    def __init__(self, temperature: float, top_k: int):
        super().__init__(temperature)
        self.top_k = top_k

    def request_options(self) -> Dict[str, Any]:
        return {**super().request_options(), "top_k": self.top_k}


class NucleusProcessor(MultinomialProcessor):
    """Draws from the most probable tokens that have the mass top_p."""

    def __init__(self, temperature: float, top_p: float):
        super().__init__(temperature)
        self.top_p = top_p

    def request_options(self) -> Dict[str, Any]:
        return {**super().request_options(), "top_p": self.top_p}


class TopKNucleusProcessor(TopKProcessor):
    """Both."""

    def __init__(self, temperature: float, top_k: int, top_p: float):
        super().__init__(temperature, top_k)
        self.top_p = top_p

    def request_options(self) -> Dict[str, Any]:
        return {**super().request_options(), "top_p": self.top_p}
