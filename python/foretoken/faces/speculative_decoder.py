# SPDX-License-Identifier: Apache-2.0
"""SpeculativeDecoder with its SpeculativeConfig and SamplingParams, as oxibonsai has them.

Contract: `generate_verified` gives the target's plain greedy text, without its end token. `draft`, `verify` and `step` work on the caller's own
text and logits, with the drafter's real distributions. One thread at a time.
"""
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ..drafters import Drafts, Session
from ..engine import Path
from ..verification import Verification
from .model import Model, opened, path_of, session_options
from .refusal import in_own_words, refuse

_NAMES = {"num_speculative_tokens": "lookahead", "max_new_tokens": "max_tokens",
          **{f"lookahead{space}{name}": f"adaptive_config.{name}" for name in ("initial", "min", "max", "alpha", "cooldown_steps") for space in " _"}}


@dataclass
class SpeculativeConfig:
    """lookahead: drafts of a step. acceptance_threshold: is subtracted from the probability of acceptance; lossy where it is not 0."""

    lookahead: int = 5
    acceptance_threshold: float = 0.0


@dataclass(frozen=True)
class AdaptiveLookaheadConfig:
    """A draft length that follows the mean number of accepted drafts, as foretoken's `lookahead: ewma`."""

    initial: int = 5
    min: int = 2
    max: int = 12
    alpha: float = 0.20
    cooldown_steps: int = 4


@dataclass(frozen=True)
class SamplingParams:
    """How tokens are drawn; temperature 0: the most probable one."""

    temperature: float = 0.7
    top_k: int = 40
    top_p: float = 0.9
    repetition_penalty: float = 1.0
    max_tokens: int = 128

    def options(self) -> Dict[str, Any]:
        """These as options of the library."""
        return {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.top_p, "repetition_penalty": self.repetition_penalty}


class SpeculativeStep(NamedTuple):
    """One step: what was drafted, what of it was accepted, and the rate."""

    draft_tokens: List[int]
    accepted_tokens: List[int]
    acceptance_rate: float


class SpeculativeDecoder:
    """Drafts with a model, and counts what is accepted. draft_engine: a model or a path. Errors: INVALID_ARGUMENT, and those of files."""

    def __init__(self, draft_engine: Union[Model, Path], config: Optional[SpeculativeConfig] = None):
        if config is not None and not isinstance(config, SpeculativeConfig):
            refuse("config", f"{type(config).__module__}.{type(config).__name__} has no lookahead and acceptance_threshold",
                   "give SpeculativeConfig of foretoken.faces.speculative_decoder")
        self.draft_engine, self.config = draft_engine, config or SpeculativeConfig()
        self.adaptive_config: Optional[AdaptiveLookaheadConfig] = None
        self._session: Optional[Tuple[SamplingParams, Session]] = None
        self._drafted: Tuple[List[int], Drafts] = ([], Drafts([], None, None))
        self.reset_stats()

    @classmethod
    def with_adaptive(cls, draft_engine: Union[Model, Path], config: SpeculativeConfig,
                      adaptive_config: AdaptiveLookaheadConfig) -> "SpeculativeDecoder":
        """A decoder whose `generate_verified` adapts the draft length, from adaptive_config.initial on."""
        made = cls(draft_engine, config)
        made.adaptive_config = adaptive_config
        return made

    def draft(self, context: Sequence[int], params: SamplingParams) -> List[int]:
        """Up to config.lookahead tokens that the draft model draws behind a text."""
        if self.adaptive_config is not None:
            refuse("adaptive_config", "a text of the caller has no controller here", "use generate_verified, or set config.lookahead for each step")
        if self._session is None or self._session[0] != params:
            self._close_session()
            shared = session_options(self.draft_engine.options if isinstance(self.draft_engine, Model) else {})
            self._session = (params, Session("model", model=path_of(self.draft_engine), **shared, **params.options()))
        with in_own_words({"drafts": "lookahead", "prompt": "context", "prompt tokens": "context"}):
            self._session[1].begin(context)
            drafts = self._session[1].propose(self.config.lookahead, distributions=params.temperature > 0)
        self._drafted = (list(context), drafts)
        return drafts.tokens

    def verify(self, draft_tokens: Sequence[int], target_logits: Sequence[Any], params: SamplingParams) -> List[int]:
        """The drafts that are accepted, from the first on. target_logits: [drafts] rows, or one more; with fewer, only so many drafts count.

        The tokens of the last `draft` are verified with their distributions and behind their text; others are certain.
        """
        rows = list(target_logits)
        drafts = list(draft_tokens)[:len(rows)]
        if not drafts:
            return []
        if len(rows) <= len(drafts):
            rows.append(rows[-1])  # the row behind all drafts decides about none of them
        text, drawn = self._drafted
        known = list(draft_tokens) == drawn.tokens
        given = {"draft_probabilities": drawn.distributions[:len(drafts)]} if known and drawn.distributions is not None else {}
        rule = {"rejection_sampling_strategy": "residual", "acceptance_threshold": self.config.acceptance_threshold}
        verification = Verification(len(rows[0]), **rule, **params.options())
        try:
            accepted = verification.verify(rows[:len(drafts) + 1], drafts, text=text if known else (), **given).accepted
        finally:
            verification.close()
        return drafts[:accepted]

    def step(self, context: Sequence[int], target_logits: Sequence[Any], params: SamplingParams) -> SpeculativeStep:
        """Drafts and verifies."""
        drafts = self.draft(context, params)
        accepted = self.verify(drafts, target_logits, params)
        self._count(1, len(drafts), len(accepted))
        return SpeculativeStep(drafts, accepted, len(accepted) / len(drafts) if drafts else 0.0)

    def generate_verified(self, target: Union[Model, Path], prompt_tokens: Sequence[int], max_tokens: int,
                          params: Optional[SamplingParams] = None) -> List[int]:
        """At most max_tokens tokens: the target's plain greedy text. params: have no effect, as in the original."""
        if not prompt_tokens or max_tokens == 0:
            return []
        with in_own_words(_NAMES), opened(target) as model:
            engine = model.engine(path_of(self.draft_engine), **self._controller())
            fixed = {} if self.adaptive_config else {"num_speculative_tokens": self.config.lookahead}
            done = engine.generate(list(prompt_tokens), max_new_tokens=max_tokens, temperature=0, **fixed).result()
            ends = engine.info()["end_tokens"]
        found = done.statistics
        self._count(int(found["draft_rounds"]), int(found["drafted"]), int(found["accepted"]))
        return done.tokens[:-1] if done.tokens and done.tokens[-1] in ends else done.tokens

    def _controller(self) -> Dict[str, Any]:
        adaptive = self.adaptive_config
        if adaptive is None:
            return {"lookahead": "fixed"}
        return {"lookahead": "ewma", **{f"lookahead_{name}": value for name, value in vars(adaptive).items()}}

    def _count(self, steps: int, drafted: int, accepted: int) -> None:
        self.total_steps += steps
        self.total_draft_tokens += drafted
        self.total_accepted_tokens += accepted

    def acceptance_rate(self) -> float:
        """Accepted tokens divided by drafts; 0.0 without drafts."""
        return self.total_accepted_tokens / max(1, self.total_draft_tokens)

    def speedup_estimate(self) -> float:
        """Tokens of a step, at least 1.0, while a draft costs nothing: the accepted drafts and the target's own token."""
        return 1.0 + self.total_accepted_tokens / self.total_steps if self.total_steps else 1.0

    def reset_stats(self) -> None:
        """All counts are 0 again."""
        self.total_steps = self.total_draft_tokens = self.total_accepted_tokens = 0

    def _close_session(self) -> None:
        if self._session is not None:
            self._session[1].close()
        self._session = None

    def close(self) -> None:
        """Frees the draft model of `draft`; may be called again, and the decoder used again."""
        self._close_session()

    def __enter__(self) -> "SpeculativeDecoder":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
