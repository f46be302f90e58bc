#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speculative_decoder.py [TARGET DRAFT]: oxibonsai's SpeculativeDecoder, with a fixed and with an adaptive lookahead.

`generate_verified` gives the target's plain greedy text. The last part is a loop of `step` on logits that a Scorer gives.
"""
import sys

from foretoken import Scorer, bundled_models
from foretoken.faces import Model, SpeculativeDecoder
from foretoken.faces.speculative_decoder import AdaptiveLookaheadConfig, SamplingParams, SpeculativeConfig


def own_loop(decoder, scorer, prompt, max_tokens):
    """Drafts and verifies on logits of the caller: the greedy text again."""
    params, context = SamplingParams(temperature=0.0), list(prompt)
    while len(context) < len(prompt) + max_tokens:
        drafts = decoder.draft(context, params)
        logits = scorer.score(context[scorer.length():] + drafts)[-len(drafts) - 1:]
        accepted = decoder.verify(drafts, logits, params)
        row = logits[len(accepted)]
        context += [*accepted, max(range(len(row)), key=row.__getitem__)]
        scorer.truncate(len(context) - 1)
    return context[len(prompt):len(prompt) + max_tokens]


def main() -> int:
    paths = sys.argv[1:] or [bundled_models() / "tales-9m-q8_0.gguf", bundled_models() / "tales-1m-draft-q8_0.gguf"]
    with Model(paths[0], context_size=256) as target, Scorer(paths[0], context_size=256) as scorer:
        prompt = target.encode("Once upon a time")
        plain = target.engine().generate(prompt, max_new_tokens=60, temperature=0).result().tokens
        fixed = SpeculativeDecoder(paths[1], SpeculativeConfig(lookahead=5))
        adaptive = SpeculativeDecoder.with_adaptive(paths[1], SpeculativeConfig(), AdaptiveLookaheadConfig(initial=3, max=8))
        for name, decoder in (("fixed", fixed), ("adaptive", adaptive)):
            same = decoder.generate_verified(target, prompt, 60) == plain
            print(f"{name}: {decoder.total_accepted_tokens} of {decoder.total_draft_tokens} drafts in {decoder.total_steps} steps accepted, "
                  f"acceptance rate {decoder.acceptance_rate():.3f}, speedup estimate {decoder.speedup_estimate():.2f}")
            if not same:
                print(f"speculative_decoder: {name}: not the target's greedy text", file=sys.stderr)
                return 1
        print(target.decode(plain))
        same = own_loop(fixed, scorer, prompt, 60) == plain
        fixed.close()
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
