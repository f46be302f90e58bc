# SPDX-License-Identifier: Apache-2.0
"""LLM and PipelineConfig, as Modular MAX has them: the engine of a `SpeculativeConfig`.

Contract: prompts of one call run together, in the target's shared passes. An `LLM` owns an `Engine`, closed with it.
"""
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Sequence, Union

from ..engine import Engine, Path
from ..errors import Code, Error
from ..stream import Completion, Stream
from .refusal import in_own_words
from .speculative_config import SpeculativeConfig
from .text_generation import SamplingParams

SIZES = {"context size": "max_length", "sequences": "max_batch_size"}  # MAX's names by the library's


@dataclass(frozen=True)
class PipelineConfig:
    """Files and sizes. model_path: None: the bundled model. max_length: of a text. options: more options of `Engine`, such as threads."""

    model_path: Optional[Path] = None
    draft_model: Optional[Path] = None
    speculative: SpeculativeConfig = field(default_factory=SpeculativeConfig)
    max_length: Optional[int] = None
    max_batch_size: Optional[int] = None
    options: Dict[str, Any] = field(default_factory=dict)


class LLM:
    """An engine by its configuration. completions: those of the last call, with statistics."""

    def __init__(self, pipeline_config: PipelineConfig):
        given = pipeline_config
        with in_own_words(SIZES):
            self.engine = Engine(given.model_path, given.draft_model, **{
                "find_drafters": False, "context_size": given.max_length, "max_sequences": given.max_batch_size,
                **given.speculative.engine_options(), **given.options})
        self.completions: List[Completion] = []

    def generate(self, prompts: Union[str, Sequence[str]], max_new_tokens: Optional[int] = 100, use_tqdm: bool = True, *,
                 sampling_params: SamplingParams = SamplingParams()) -> List[str]:
        """The texts behind the prompts. use_tqdm: has no effect, as no progress is shown. Errors: INVALID_ARGUMENT, TOO_LARGE, STOPPED."""
        limit = sampling_params.max_new_tokens if max_new_tokens is None else max_new_tokens
        options = {**sampling_params.request_options(), "max_new_tokens": limit}
        running: List[Stream] = []
        for prompt in [prompts] if isinstance(prompts, str) else prompts:
            running.append(self._begin(prompt, options, running))
        self.completions = [stream.result() for stream in running]
        return [done.text for done in self.completions]

    def _begin(self, prompt: str, options: Dict[str, Any], running: Sequence[Stream]) -> Stream:
        waiting = iter(running)
        while True:
            try:
                return self.engine.generate(prompt, **options)
            except Error as error:
                earlier = next(waiting, None)
                if error.code != Code.BUSY or earlier is None:
                    raise
                earlier.result()

    def close(self) -> None:
        """Closes the engine; may be called again."""
        self.engine.close()

    def __enter__(self) -> "LLM":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
