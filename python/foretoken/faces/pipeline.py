# SPDX-License-Identifier: Apache-2.0
"""StandaloneSpeculativeDecodingPipeline, as Modular MAX has it: many requests, one step at a time, for a caller that schedules them.

Contract: each request has its own draft length and ends on its own. A draft is a token of a `Session` with the draft model; the engine verifies the
drafts of all requests of a step together, each by sample-match or greedy, so a text is the one that its request has without drafts. One thread
at a time; a step that fails has changed no context.
"""
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple

from ..drafters import Session
from ..engine import Engine
from ..stream import Completion
from .llm import SIZES, PipelineConfig
from .model import session_options
from .pipeline_metrics import SpeculativeDecodingMetrics
from .refusal import in_own_words, refuse
from .text_generation import GenerationStatus, TextContext, TextGenerationInputs, TextGenerationOutput

_STATUS = {"stop": GenerationStatus.END_OF_SEQUENCE, "length": GenerationStatus.MAXIMUM_LENGTH}
NO_TOKEN = -1  # in place of a recovered or bonus token that a text has not


@dataclass(frozen=True)
class ModelInputs:
    """Rows of different lengths: tokens[input_row_offsets[i]:input_row_offsets[i + 1]] belong to request i of the batch."""

    tokens: List[int]
    input_row_offsets: List[int]


def _ragged(rows: Sequence[Sequence[int]]) -> ModelInputs:
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row))
    return ModelInputs([token for row in rows for token in row], offsets)


class _Request:
    """What the pipeline holds for a context. read: tokens of the text before its last step. new: tokens of that step."""

    def __init__(self, session: Session, key: Tuple[Any, ...]):
        self.session, self.key, self.read, self.new = session, key, 0, 0
        self.verified: Optional[Completion] = None


class StandaloneSpeculativeDecodingPipeline:
    """A target and a draft model that run requests step by step.

    pipeline_config: its speculative_method is "standalone". eos_token_id: one more end token. pipeline_model, weight_adapters, tokenizer,
    draft_pipeline_model, draft_weight_adapters: None, as the model files have all of it. Errors: INVALID_ARGUMENT, and those of files.
    """

    def __init__(self, pipeline_config: PipelineConfig, pipeline_model: Any = None, eos_token_id: Optional[int] = None, weight_adapters: Any = None,
                 tokenizer: Any = None, draft_pipeline_model: Any = None, draft_weight_adapters: Any = None):
        for name, given in (("pipeline_model", pipeline_model), ("weight_adapters", weight_adapters), ("tokenizer", tokenizer),
                            ("draft_pipeline_model", draft_pipeline_model), ("draft_weight_adapters", draft_weight_adapters)):
            if given:
                refuse(name, "the model files decide it", "leave it out")
        settings = pipeline_config.speculative
        if not settings.is_standalone():
            refuse("speculative_method", f"{settings.speculative_method!r} is not standalone", "use LLM for other methods")
        if pipeline_config.draft_model is None:
            refuse("draft_model", "there is none", "name the draft model's file in PipelineConfig")
        self._check_rule(settings)
        self._config, self._eos = pipeline_config, eos_token_id
        self._options = pipeline_config.options
        with in_own_words(SIZES):
            self._engine = Engine(pipeline_config.model_path, **{
                "find_drafters": False, "speculative_method": "none", "context_size": pipeline_config.max_length,
                "max_sequences": pipeline_config.max_batch_size, **self._options})
        self._requests: Dict[str, _Request] = {}
        self._idle: Dict[Tuple[Any, ...], List[Session]] = {}
        self.metrics = SpeculativeDecodingMetrics(settings.num_speculative_tokens)

    @staticmethod
    def _check_rule(settings: Any) -> None:
        if settings.rejection_sampling_strategy not in (None, "greedy", "sample-match"):
            refuse("rejection_sampling_strategy", f"{settings.rejection_sampling_strategy} verifies no drafts that are given step by step",
                   "leave it out, or use LLM, which has it")
        for name in ("num_speculative_tokens_per_batch_size", "adaptive_speculative_widths", "synthetic_acceptance_rate"):
            if getattr(settings, name):
                refuse(name, "the caller of generate_draft_tokens chooses num_steps", "leave it out, or use LLM, which has it")

    def execute(self, inputs: TextGenerationInputs) -> Dict[str, TextGenerationOutput]:
        """One step for these requests: new ones begin, known ones go on, all others pause; those that are done give no tokens."""
        done = [context for context in inputs.flat_batch if context.is_done]
        batches = [[context for context in batch if not context.is_done] for batch in inputs.batches]
        batch = [context for replica in batches for context in replica]
        draft_inputs, num_steps = self.prepare_batch(None, batch, batches, self._config.speculative.num_speculative_tokens, is_draft=True)
        generated, tokens, logits, draft_inputs, all_logits = self.generate_draft_tokens(batch, num_steps, draft_inputs)
        merged = self.merge_draft_tokens(draft_inputs, tokens)
        verdict = self.verify_draft_tokens_with_target_model(draft_inputs, batch, batches, generated, tokens, logits, merged.tokens,
                                                             merged.input_row_offsets, all_logits)
        self.update_contexts(batch, *verdict, tokens, generated)
        return {**self.build_response(batch), **{context.request_id: TextGenerationOutput(context.request_id, [], context.status) for context in done}}

    def prepare_batch(self, model: Any, batch: Sequence[TextContext], replica_batches: Sequence[Sequence[TextContext]], num_steps: int,
                      return_n_logits: int = 1, is_draft: bool = False, draft_inputs: Optional[ModelInputs] = None,
                      merged_draft_tokens: Optional[Sequence[int]] = None,
                      merged_draft_offsets: Optional[Sequence[int]] = None) -> Tuple[ModelInputs, int]:
        """The rows that the draft model (is_draft) or the target reads next, and num_steps. model, return_n_logits: have no effect.

        Errors, with nothing begun: INVALID_ARGUMENT (a request twice or in no replica, one that is done; for the target, no merged drafts).
        """
        if not is_draft:
            if merged_draft_tokens is None or merged_draft_offsets is None:
                refuse("merged_draft_tokens", "the target reads the drafts too", "give the tokens and offsets of merge_draft_tokens")
            return ModelInputs(list(merged_draft_tokens), list(merged_draft_offsets)), num_steps
        ids = [context.request_id for context in batch]
        if len(set(ids)) != len(ids) or sorted(ids) != sorted(context.request_id for replica in replica_batches for context in replica):
            refuse("batch", "it is not each request of replica_batches once", "give the same contexts, each with its own request_id")
        for context in batch:
            if context.is_done or not context.tokens:
                refuse("batch", f"request {context.request_id} is done or has no prompt", "give requests that go on")
        for context in batch:
            self._begin(context)
        return _ragged([context.tokens[self._requests[context.request_id].read:] for context in batch]), num_steps

    def _begin(self, context: TextContext) -> None:
        if context.request_id in self._requests:
            return
        drawing = context.sampling_params.drawing()
        key = tuple(sorted(drawing.items()))
        idle = self._idle.get(key)
        shared = session_options({"context_size": self._config.max_length, **self._options})
        session = idle.pop() if idle else Session("model", model=self._config.draft_model, **shared, **drawing)
        with in_own_words({"prompt tokens": "tokens"}):
            session.begin(context.tokens)
        self._requests[context.request_id] = _Request(session, key)

    def generate_draft_tokens(self, batch: Sequence[TextContext], num_steps: int,
                              model_inputs: ModelInputs) -> Tuple[int, List[List[int]], None, ModelInputs, None]:
        """num_steps, the drafts of each request, None, model_inputs, None: verification needs no logits of the draft model.

        A request has fewer drafts where its text has less room; no request shortens another's.
        """
        drafts = []
        for context in batch:
            room = context.max_new_tokens - len(context.generated_tokens) - 1
            drafts.append(self._request_of(context).session.propose(max(0, min(num_steps, room))).tokens)
        return num_steps, drafts, None, model_inputs, None

    @staticmethod
    def merge_draft_tokens(draft_inputs: ModelInputs, draft_tokens: Sequence[Sequence[int]]) -> ModelInputs:
        """Each request's new tokens with its drafts behind them."""
        tokens, offsets = draft_inputs.tokens, draft_inputs.input_row_offsets
        return _ragged([[*tokens[begin:end], *drafts] for begin, end, drafts in zip(offsets, offsets[1:], draft_tokens)])

    def verify_draft_tokens_with_target_model(self, draft_inputs: ModelInputs, context_batch: Sequence[TextContext],
                                              replica_batches: Sequence[Sequence[TextContext]], num_draft_tokens_generated: int,
                                              draft_tokens: Sequence[Sequence[int]], draft_logits: Any, merged_draft_tokens: Sequence[int],
                                              merged_draft_offsets: Sequence[int],
                                              all_draft_logits: Any = None) -> Tuple[List[int], List[int], List[int]]:
        """For each request: the place of its first rejected draft (their number if there is none), the recovered and the bonus token, or -1.

        Errors: INVALID_ARGUMENT (merged drafts that are not those of draft_tokens), and those of `Engine.generate`.
        """
        if ModelInputs(list(merged_draft_tokens), list(merged_draft_offsets)) != self.merge_draft_tokens(draft_inputs, draft_tokens):
            refuse("merged_draft_tokens", "they are not the new tokens with draft_tokens behind them", "give what merge_draft_tokens returns")
        with in_own_words({"drafts": "draft_tokens"}):
            streams = [self._engine.generate(context.prompt_tokens, generated=context.generated_tokens, drafts=drafts, **self._asked(context))
                       for context, drafts in zip(context_batch, draft_tokens)]
            verified = [stream.result() for stream in streams]
        for context, done in zip(context_batch, verified):
            self._request_of(context).verified = done
        accepted = [int(done.statistics["accepted"]) for done in verified]
        last = [done.tokens[-1] if len(done.tokens) > kept else NO_TOKEN for done, kept in zip(verified, accepted)]
        full = [kept == len(drafts) for kept, drafts in zip(accepted, draft_tokens)]
        return (accepted, [NO_TOKEN if whole else token for whole, token in zip(full, last)],
                [token if whole else NO_TOKEN for whole, token in zip(full, last)])

    def _asked(self, context: TextContext) -> Dict[str, Any]:
        asked = context.sampling_params.request_options()
        ends = {*asked["stop_token_ids"], *context.eos_token_ids, *(() if self._eos is None else (self._eos,))}
        return {**asked, "stop_token_ids": sorted(ends), "max_new_tokens": context.max_new_tokens}

    def update_contexts(self, context_batch: Sequence[TextContext], first_rejected_tokens: Sequence[int], recovered_tokens: Sequence[int],
                        bonus_tokens: Sequence[int], draft_tokens: Sequence[Sequence[int]], num_draft_tokens_generated: int) -> None:
        """Adds what was verified to the contexts, and tells the drafter and the metrics. Errors: INVALID_ARGUMENT (nothing was verified)."""
        for context, kept, recovered, bonus, drafts in zip(context_batch, first_rejected_tokens, recovered_tokens, bonus_tokens, draft_tokens):
            request = self._request_of(context)
            if request.verified is None:
                refuse("context_batch", f"no drafts of request {context.request_id} were verified", "call verify_draft_tokens_with_target_model first")
            tokens = [*drafts[:kept], *(token for token in (recovered, bonus) if token != NO_TOKEN)]
            request.read, request.new = len(context.tokens), len(tokens)
            context.tokens.extend(tokens)
            context.status = _STATUS.get(request.verified.finish_reason, GenerationStatus.ACTIVE)
            request.session.observe(tokens)
            request.verified = None
            self.metrics.update(len(drafts), kept, bonus != NO_TOKEN)

    def build_response(self, context_batch: Sequence[TextContext]) -> Dict[str, TextGenerationOutput]:
        """What the last step gave each request."""
        return {context.request_id: TextGenerationOutput(context.request_id, context.tokens[len(context.tokens) - self._request_of(context).new:],
                                                         context.status) for context in context_batch}

    def _request_of(self, context: TextContext) -> _Request:
        found = self._requests.get(context.request_id)
        if found is None:
            refuse("request_id", f"there is no request {context.request_id}", "call prepare_batch first")
        return found

    def release(self, request_id: str) -> None:
        """Forgets a request, whose id may then be used again."""
        found = self._requests.pop(request_id, None)
        if found is None:
            refuse("request_id", f"there is no request {request_id}", "give the id of one that began and was not released")
        self._idle.setdefault(found.key, []).append(found.session)

    def close(self) -> None:
        """Closes the models; may be called again."""
        for session in [request.session for request in self._requests.values()] + [one for idle in self._idle.values() for one in idle]:
            session.close()
        self._requests.clear()
        self._idle.clear()
        self._engine.close()

    def __enter__(self) -> "StandaloneSpeculativeDecodingPipeline":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
