# SPDX-License-Identifier: Apache-2.0
"""SpeculativeDecoder with SpeculateConfig and VerifyStrategy, as naive-speculate has them: one round over a Drafter and a Scorer.

Contract: `speculative_decode` returns the accepted drafts and one more token, and crops both caches to the accepted text, so the next query is that
last token. Under GREEDY_MATCH the tokens are the target's plain greedy text. One thread at a time.
"""
import enum
from dataclasses import dataclass
from typing import Any, List

from ..verification import Verification
from .drafter import Drafter
from .inferencer import SampleStrategy, ids_of
from .kv_cache import KVCache
from .language_model import row_of
from .refusal import refuse
from .scorer import Scorer


class VerifyStrategy(str, enum.Enum):
    """GREEDY_MATCH: a draft is the target's most probable token. SPECULATIVE_SAMPLING: foretoken's rule `residual`."""

    GREEDY_MATCH = "greedy_match"
    SPECULATIVE_SAMPLING = "speculative_sampling"


@dataclass(frozen=True)
class SpeculateConfig:
    """num_draft_tokens: of a round."""

    num_draft_tokens: int = 5
    sample_strategy: SampleStrategy = SampleStrategy.RANDOM
    verify_strategy: VerifyStrategy = VerifyStrategy.SPECULATIVE_SAMPLING


class SpeculativeDecoder:
    """A drafter and a scorer, with a cache for each."""

    def __init__(self, speculate_config: SpeculateConfig, drafter: Drafter, scorer: Scorer, drafter_kvcache: KVCache, scorer_kvcache: KVCache, *,
                 seed: int = 0):
        self._config, self._drafter, self._scorer = speculate_config, drafter, scorer
        self._drafter_kvcache, self._scorer_kvcache, self._seed = drafter_kvcache, scorer_kvcache, seed
        self._text: List[int] = []

    @property
    def num_draft_tokens(self) -> int:
        """Drafts of a round."""
        return self._config.num_draft_tokens

    @property
    def sample_strategy(self) -> SampleStrategy:
        """How drafts are drawn."""
        return self._config.sample_strategy

    def speculative_decode(self, query_token_ids: Any, draft_strategy: SampleStrategy, verify_strategy: VerifyStrategy) -> Any:
        """One round: tokens [1, accepted drafts + 1]. query_token_ids: [1, tokens], what follows the tokens of scorer_kvcache.

        Errors: INVALID_ARGUMENT (caches that hold another text than that of this decoder's rounds), TOO_LARGE.
        """
        held = self._scorer_kvcache.get_num_tokens()
        if held > len(self._text) or self._drafter_kvcache.get_num_tokens() > held:
            refuse("scorer_kvcache", "it holds tokens that this decoder does not know", "begin with empty caches, and let the decoder read the prompt")
        text = self._text[:held] + row_of(query_token_ids)
        drafted = self._drafter.draft([text[self._drafter_kvcache.get_num_tokens():]], self._drafter_kvcache, self.num_draft_tokens, draft_strategy)
        drafts = row_of(drafted.token_ids)
        logits = self._scorer.score([text[held:] + drafts], self._scorer_kvcache).token_logits[0][-(len(drafts) + 1):]
        certain = SampleStrategy(draft_strategy) is SampleStrategy.GREEDY
        rule = {"temperature": 0.0} if VerifyStrategy(verify_strategy) is VerifyStrategy.GREEDY_MATCH else {
            "temperature": 1.0, "rejection_sampling_strategy": "residual"}
        verification = Verification(len(logits[0]), seed=self._seed, **rule)
        found = verification.verify(logits, drafts, text=text, draft_logits=None if certain else drafted.token_logits[0])
        verification.close()
        self._text = text + drafts[:found.accepted]
        for cache in (self._drafter_kvcache, self._scorer_kvcache):
            cache.crop(max(0, cache.get_num_tokens() - len(self._text)))
        return ids_of([*drafts[:found.accepted], found.next])
