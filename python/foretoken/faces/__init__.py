# SPDX-License-Identifier: Apache-2.0
"""Five designs of speculative decoding in their own words: their names, arguments and defaults, over this package's engine.

Contract: a face only translates. Drafting, verifying and sampling are the library's, so a text is the one that `Engine` gives. An argument that
cannot be honoured is an `Error` with its name as field. docs/python.md has a table of them, examples/python/ a program for each.
"""
from .drafter import Drafter, DraftResult
from .generate import autoregressive_generate, ngram_assisted_speculative_generate, speculative_generate
from .inferencer import Inferencer, SampleStrategy
from .kv_cache import KVCache
from .language_model import LanguageModel
from .llm import LLM, PipelineConfig
from .logits_processor import GreedyProcessor, LogitsProcessor, MultinomialProcessor, NucleusProcessor, TopKNucleusProcessor, TopKProcessor
from .model import Model
from .ngram_storage import NGramStorage, OneLevelNGramStorage
from .pipeline import StandaloneSpeculativeDecodingPipeline
from .scorer import Scorer, ScoreResult
from .speculative_config import SpeculativeConfig
from .speculative_decoder import SpeculativeDecoder

__all__ = ["DraftResult", "Drafter", "GreedyProcessor", "Inferencer", "KVCache", "LLM", "LanguageModel", "LogitsProcessor", "Model",
           "MultinomialProcessor", "NGramStorage", "NucleusProcessor", "OneLevelNGramStorage", "PipelineConfig", "SampleStrategy", "ScoreResult",
           "Scorer", "SpeculativeConfig", "SpeculativeDecoder", "StandaloneSpeculativeDecodingPipeline", "TopKNucleusProcessor", "TopKProcessor",
           "autoregressive_generate", "ngram_assisted_speculative_generate", "speculative_generate"]
