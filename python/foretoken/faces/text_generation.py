# SPDX-License-Identifier: Apache-2.0
"""The requests and answers of Modular MAX's pipelines: SamplingParams, TextContext, TextGenerationInputs, TextGenerationOutput.

Contract: a `TextContext` is the caller's; the pipeline appends its tokens. One thread at a time.
"""
import enum
import uuid
from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, Optional, Sequence


class GenerationStatus(enum.Enum):
    """Whether a request goes on."""

    ACTIVE = "active"
    END_OF_SEQUENCE = "end_of_sequence"
    MAXIMUM_LENGTH = "maximum_length"

    @property
    def is_done(self) -> bool:
        """It has ended."""
        return self is not GenerationStatus.ACTIVE


@dataclass(frozen=True)
class SamplingParams:
    """How tokens are drawn, with MAX's defaults: the most probable one (top_k=1)."""

    top_k: int = 1
    top_p: float = 1.0
    min_p: float = 0.0
    temperature: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    max_new_tokens: Optional[int] = None
    min_new_tokens: int = 0
    ignore_eos: bool = False
    stop: Optional[Sequence[str]] = None
    stop_token_ids: Optional[Sequence[int]] = None
    seed: int = 0

    def drawing(self) -> Dict[str, Any]:
        """What a drafter shares of it, as options of the library. One candidate is temperature 0, where drafts are certain."""
        names = ("top_k", "top_p", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty", "min_new_tokens", "seed")
        return {"temperature": 0.0 if self.top_k == 1 else self.temperature, **{name: getattr(self, name) for name in names}}

    def request_options(self) -> Dict[str, Any]:
        """The options of a request; max_new_tokens is the caller's to add."""
        return {**self.drawing(), "ignore_eos": self.ignore_eos, "stop": list(self.stop or ()), "stop_token_ids": list(self.stop_token_ids or ())}


@dataclass
class TextContext:
    """A request and its text. max_length: of prompt and generated tokens. tokens: the prompt; generated ones are added behind it."""

    max_length: int
    tokens: List[int]
    request_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    eos_token_ids: FrozenSet[int] = frozenset()
    sampling_params: SamplingParams = SamplingParams()
    status: GenerationStatus = GenerationStatus.ACTIVE

    def __post_init__(self) -> None:
        self.tokens, self.eos_token_ids = [int(token) for token in self.tokens], frozenset(self.eos_token_ids)
        self.prompt_length = len(self.tokens)

    @property
    def prompt_tokens(self) -> List[int]:
        """The tokens that it began with."""
        return self.tokens[:self.prompt_length]

    @property
    def generated_tokens(self) -> List[int]:
        """The tokens behind the prompt."""
        return self.tokens[self.prompt_length:]

    @property
    def max_new_tokens(self) -> int:
        """The most generated tokens."""
        room, asked = max(0, self.max_length - self.prompt_length), self.sampling_params.max_new_tokens
        return room if asked is None else min(room, asked)

    @property
    def is_done(self) -> bool:
        """Its text has ended."""
        return self.status.is_done


@dataclass(frozen=True)
class TextGenerationInputs:
    """The requests of one step. batches: a list of contexts for each replica."""

    batches: Sequence[Sequence[TextContext]]
    num_steps: int = 1

    @property
    def flat_batch(self) -> List[TextContext]:
        """All of them."""
        return [context for batch in self.batches for context in batch]


@dataclass(frozen=True)
class TextGenerationOutput:
    """What one step gave a request."""

    request_id: str
    tokens: List[int]
    final_status: GenerationStatus
    log_probabilities: Any = None

    @property
    def is_done(self) -> bool:
        """Its text has ended."""
        return self.final_status.is_done
