# SPDX-License-Identifier: Apache-2.0
"""SpeculativeConfig, as Modular MAX has it.

Contract: the fields and defaults are MAX's, and mean what a file in MAX's dialect means (docs/configuration.md). An instance is immutable and was
checked by the library. `engine_options` are for `Engine`; `LLM` is an engine with them.
"""
from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from ..options import Kind, Options
from .refusal import in_own_words, refuse

_NAMES = {"relaxed_top_n": "relaxed_topk"}


def _batch_sizes(rows: Sequence[Any]) -> str:
    """Rows {batch_start, batch_end, num_tokens}, or three numbers, as the library's text."""
    keys = ("batch_start", "batch_end", "num_tokens")
    numbers = [[row[key] for key in keys] if isinstance(row, Mapping) and set(row) == set(keys) else row for row in rows]
    for row in numbers:
        if isinstance(row, Mapping) or len(row) != 3:
            refuse("num_speculative_tokens_per_batch_size", f"{row} is no row", "give batch_start, batch_end and num_tokens")
    return ",".join("{}-{}:{}".format(*row) for row in numbers)


@dataclass(frozen=True)
class SpeculativeConfig:
    """Settings of speculation. Errors: INVALID_ARGUMENT with the field, at construction.

    speculative_method: None drafts nothing; "standalone", "eagle", "mtp", and foretoken's others. num_speculative_tokens: drafts of each round.
    rejection_sampling_strategy: None: by drafter; "typical-acceptance" is foretoken's target-probability.
    """

    speculative_method: Optional[str] = None
    num_speculative_tokens: int = 2
    rejection_sampling_strategy: Optional[str] = None
    synthetic_acceptance_rate: Optional[float] = None
    num_speculative_tokens_per_batch_size: Optional[Sequence[Any]] = None
    num_speculative_tokens_mixed_batch: Optional[int] = None
    adaptive_speculative_widths: Union[None, bool, str, Sequence[int]] = None
    adaptive_speculative_min_batch_size: int = 1
    use_relaxed_acceptance_for_thinking: bool = False
    relaxed_topk: int = 10
    relaxed_delta: float = 0.6
    use_greedy_acceptance: bool = False
    draft_proposal: str = "sampled"
    config_file: Optional[str] = None
    section_name: Optional[str] = None

    def __post_init__(self) -> None:
        if self.adaptive_speculative_min_batch_size != 1:
            refuse("adaptive_speculative_min_batch_size", "it saves graphs of small batches, and nothing is captured here", "leave it out")
        if self.use_greedy_acceptance:
            refuse("use_greedy_acceptance", "it would give the text of temperature 0", "ask for that temperature")
        if self.draft_proposal != "sampled":
            refuse("draft_proposal", "drafts follow the request's temperature", "leave it out")
        for field in ("config_file", "section_name"):
            if getattr(self, field) is not None:
                refuse(field, "this class reads no files", "give the settings as arguments, or the file to `foretoken ... --speculative-config FILE`")
        with in_own_words(_NAMES):
            Options(Kind.ENGINE, self.engine_options())

    def engine_options(self) -> Dict[str, Any]:
        """These settings as options of `Engine`."""
        strategy = self.rejection_sampling_strategy
        relaxed = {"use_relaxed_acceptance_for_thinking": True, "relaxed_top_n": self.relaxed_topk, "relaxed_delta": self.relaxed_delta}
        return {"speculative_method": self.speculative_method or "none", "num_speculative_tokens": self.num_speculative_tokens,
                "rejection_sampling_strategy": "target-probability" if strategy == "typical-acceptance" else strategy,
                "synthetic_acceptance_rate": self.synthetic_acceptance_rate,
                "num_speculative_tokens_mixed_batch": self.num_speculative_tokens_mixed_batch, **self._lengths(),
                **(relaxed if self.use_relaxed_acceptance_for_thinking else {})}

    def _lengths(self) -> Dict[str, Any]:
        widths, rows = self.adaptive_speculative_widths, self.num_speculative_tokens_per_batch_size
        if rows:
            return {"lookahead": "batch-size", "num_speculative_tokens_per_batch_size": _batch_sizes(rows)}
        if widths:
            return {"lookahead": "cost-model", "adaptive_speculative_widths": None if widths is True else widths}
        return {"lookahead": "fixed"}

    def is_standalone(self) -> bool:
        """Whether a draft model of its own drafts."""
        return self.speculative_method == "standalone"

    def is_eagle(self) -> bool:
        """Whether an EAGLE head drafts."""
        return self.speculative_method == "eagle"

    def is_mtp(self) -> bool:
        """Whether the target's own prediction heads draft."""
        return self.speculative_method == "mtp"

    def uses_greedy_rejection(self) -> bool:
        """Whether drafts are compared with the most probable token."""
        return self.rejection_sampling_strategy == "greedy"

    def uses_typical_acceptance(self) -> bool:
        """Whether drafts are accepted with the target's probability."""
        return self.rejection_sampling_strategy in ("typical-acceptance", "target-probability")

    def uses_logit_comparison(self) -> bool:
        """Whether raw logits are compared."""
        return self.rejection_sampling_strategy == "logit-comparison"
