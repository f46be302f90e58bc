#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drafter_and_scorer.py [TARGET DRAFT]: naive-speculate's parts: a Drafter, a Scorer, and caches that the program crops itself.

The first loop is written out, the second is SpeculativeDecoder. Both give the target's plain greedy text.
"""
import sys

from foretoken import bundled_models
from foretoken.faces import Drafter, Inferencer, KVCache, LanguageModel, Model, SampleStrategy, Scorer
from foretoken.faces.speculate import SpeculateConfig, SpeculativeDecoder, VerifyStrategy


def written_out(drafter, scorer, prompt, max_tokens):
    """Draft, score, compare, crop."""
    drafts_cache, target_cache, text = KVCache(), KVCache(), list(prompt)
    while len(text) < len(prompt) + max_tokens:
        drafted = drafter.draft([text[drafts_cache.get_num_tokens():]], drafts_cache, 4, SampleStrategy.GREEDY)
        drafts = [int(token) for token in drafted.token_ids[0]]
        logits = scorer.score([text[target_cache.get_num_tokens():] + drafts], target_cache).token_logits[0][-len(drafts) - 1:]
        best = [max(range(len(row)), key=row.__getitem__) for row in logits]
        kept = next((i for i, token in enumerate(drafts) if token != best[i]), len(drafts))
        text += [*drafts[:kept], best[kept]]
        target_cache.crop(len(drafts) - kept)
        drafts_cache.crop(max(0, drafts_cache.get_num_tokens() - len(text) + 1))
    for cache in (drafts_cache, target_cache):
        cache.close()
    return text[len(prompt):len(prompt) + max_tokens]


def by_decoder(drafter, scorer, prompt, max_tokens, strategies):
    """Those four steps by SpeculativeDecoder."""
    caches = KVCache(), KVCache()
    decoder = SpeculativeDecoder(SpeculateConfig(num_draft_tokens=4), drafter, scorer, *caches)
    query, output = prompt, []
    while len(output) < max_tokens:
        tokens = [int(token) for token in decoder.speculative_decode([query], *strategies)[0]]
        query = tokens[-1:]
        output += tokens
    for cache in caches:
        cache.close()
    return output[:max_tokens]


def main() -> int:
    paths = sys.argv[1:] or [bundled_models() / "tales-9m-q8_0.gguf", bundled_models() / "tales-1m-draft-q8_0.gguf"]
    with LanguageModel(paths[0], context_size=256) as large, LanguageModel(paths[1], context_size=256) as small, \
            Model(paths[0], context_size=256) as target:
        drafter, scorer, prompt = Drafter(Inferencer(small)), Scorer(large), target.encode("Once upon a time")
        plain = target.engine().generate(prompt, max_new_tokens=40, temperature=0, ignore_eos=True).result().tokens
        greedy = SampleStrategy.GREEDY, VerifyStrategy.GREEDY_MATCH
        if written_out(drafter, scorer, prompt, 40) != plain or by_decoder(drafter, scorer, prompt, 40, greedy) != plain:
            print("drafter_and_scorer: not the target's greedy text", file=sys.stderr)
            return 1
        print("Greedy:", target.decode(plain))
        sampled = by_decoder(drafter, scorer, prompt, 40, (SampleStrategy.RANDOM, VerifyStrategy.SPECULATIVE_SAMPLING))
        print("Sampled:", target.decode(sampled))
    return 0


if __name__ == "__main__":
    sys.exit(main())
