# SPDX-License-Identifier: Apache-2.0
"""speculative_generate, ngram_assisted_speculative_generate and autoregressive_generate, as romsto/Speculative-Decoding has them.

Contract: the arguments, their order and their defaults are that design's; `seed` is added, where it uses torch's generator. Tokens are the
engine's: under GreedyProcessor all three give the same ones, and an end token is the last one.
"""
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from ..engine import Engine, Path
from ..stream import Completion, Origin, Round
from .logits_processor import GreedyProcessor, LogitsProcessor
from .model import Model, opened, path_of
from .ngram_storage import INgramStorage
from .refusal import in_own_words, refuse

_NAMES = {"num_speculative_tokens": "gamma", "max_new_tokens": "max_gen_len", "prompt_tokens": "inputs", "stop_token_ids": "eos_tokens_id",
          "ngram_filler_top_k": "filler_top_k", "ngram_max": "ngramstorage.n",
          **{name: f"logits_processor.{name}" for name in ("temperature", "top_k", "top_p")}}
_Ends = Union[None, int, Sequence[int]]


def _request(inputs: Sequence[int], processor: LogitsProcessor, max_gen_len: int, ends: _Ends, seed: int) -> Dict[str, Any]:
    if isinstance(inputs, (str, bytes)):
        refuse("inputs", "they are a text, not token ids", "give Model.encode(text)")
    if not isinstance(processor, LogitsProcessor):
        refuse("logits_processor", f"{type(processor).__name__} is no LogitsProcessor", "take one of foretoken.faces, or a subclass with _process")
    stops = {} if ends is None else {"ignore_eos": True, "stop_token_ids": [ends] if isinstance(ends, int) else list(ends)}
    return {"prompt": list(inputs), "max_new_tokens": max_gen_len, "seed": seed, "processors": processor.processors(), **processor.request_options(),
            **stops}


def _show(found: Round, engine: Engine, tokenizer: Any) -> None:
    decode = engine.detokenize if tokenizer is None else tokenizer.decode
    accepted = found.origins.count(Origin.ACCEPTED)
    step = "Initial step" if not found.drafted else f"Speculative step: {accepted} of {found.drafted} drafts"
    rejected = f" instead of {decode(found.rejected)!r}" if found.rejected else ""
    print(f"{step}: {decode(found.tokens)!r}{rejected}")


def _run(engine: Engine, tokenizer: Any, debug: bool, options: Dict[str, Any]) -> Completion:
    with engine.generate(**options) as stream:
        for found in stream:
            if debug and found.tokens:
                _show(found, engine, tokenizer)
        return stream.result()


def speculative_generate(inputs: Sequence[int], drafter: Union[Model, Path], target: Union[Model, Path], tokenizer: Any = None, gamma: int = 5,
                         logits_processor: Optional[LogitsProcessor] = None, max_gen_len: int = 40, eos_tokens_id: _Ends = 1, pad_token_id: int = 0,
                         use_cache: bool = False, skip_sample_adjustment: bool = False, first_target: bool = True, debug: bool = False, *,
                         seed: int = 0) -> Tuple[List[int], float]:
    """Generated tokens, and accepted drafts divided by drafts (0.0 without drafts).

    drafter, target: models, or paths that are opened for this call; the drafter runs with the target's options. tokenizer: has decode(ids), used
    by `debug`; None: the target's. gamma: drafts of a round, [0, 64].
    logits_processor: None: GreedyProcessor(). eos_tokens_id: None: the file's end tokens. pad_token_id: has no effect, as nothing is padded.
    use_cache: False computes the whole text again in each round; True gives the same tokens sooner. skip_sample_adjustment: is lossy.
    debug: prints each round. Errors: INVALID_ARGUMENT with the argument as field, and those of files.
    """
    options = _request(inputs, logits_processor or GreedyProcessor(), max_gen_len, eos_tokens_id, seed)
    with in_own_words(_NAMES), opened(target) as model:
        engine = model.engine(path_of(drafter), kv_cache=use_cache, skip_sample_adjustment=skip_sample_adjustment, lookahead="fixed",
                              rejection_sampling_strategy="residual")
        done = _run(engine, tokenizer, debug, {**options, "num_speculative_tokens": gamma, "first_target": first_target})
    return done.tokens, float(done.statistics.get("acceptance_rate", 0.0))


def ngram_assisted_speculative_generate(inputs: Sequence[int], ngramstorage: INgramStorage, target: Union[Model, Path], tokenizer: Any = None,
                                        gamma: int = 5, filler_top_k: int = 3, logits_processor: Optional[LogitsProcessor] = None,
                                        max_gen_len: int = 40, eos_tokens_id: _Ends = 1, pad_token_id: int = 0, use_cache: bool = False,
                                        first_target: bool = True, stop_if_unknown: bool = False, debug: bool = False, *,
                                        seed: int = 0) -> Tuple[List[int], float]:
    """Speculative generation without a draft model: drafts are looked up in the text and in earlier texts of the storage.

    ngramstorage: keeps texts from call to call for a `Model`, until its `reset`. filler_top_k: also learns the target's top tokens; 1: off.
    stop_if_unknown: has no effect: a draft always ends where the storage knows nothing, where that design draws random tokens.
    """
    options = _request(inputs, logits_processor or GreedyProcessor(), max_gen_len, eos_tokens_id, seed)
    with in_own_words(_NAMES), opened(target) as model:
        engine = model.engine(None, ngramstorage.used_by(model), kv_cache=use_cache, ngram_filler_top_k=filler_top_k, lookahead="fixed",
                              **ngramstorage.engine_options())
        done = _run(engine, tokenizer, debug, {**options, "num_speculative_tokens": gamma, "first_target": first_target})
    return done.tokens, float(done.statistics.get("acceptance_rate", 0.0))


def autoregressive_generate(inputs: Sequence[int], model: Union[Model, Path], max_gen_len: int = 40,
                            logits_processor: Optional[LogitsProcessor] = None, eos_tokens_id: _Ends = 1, pad_token_id: int = 0,
                            use_cache: bool = False, debug: bool = False, *, seed: int = 0) -> List[int]:
    """Tokens that the model generates alone; the arguments are those of `speculative_generate`."""
    options = _request(inputs, logits_processor or GreedyProcessor(), max_gen_len, eos_tokens_id, seed)
    with in_own_words(_NAMES), opened(model) as target:
        return _run(target.engine(kv_cache=use_cache), None, debug, options).tokens
