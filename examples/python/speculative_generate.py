#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speculative_generate.py [TARGET DRAFT]: a program for romsto/Speculative-Decoding, with its arguments and defaults.

What changes is how models are loaded: a Model is the target or the drafter, and the tokenizer too. Greedy text is that of the target alone.
"""
import sys

from foretoken import bundled_models
from foretoken.faces import Model, NucleusProcessor, autoregressive_generate, speculative_generate


def main() -> int:
    paths = sys.argv[1:] or [bundled_models() / "tales-9m-q8_0.gguf", bundled_models() / "tales-1m-draft-q8_0.gguf"]
    with Model(paths[0], context_size=256) as target, Model(paths[1]) as drafter:
        tokenizer = target
        inputs = tokenizer.encode("Once upon a time")
        ends = tokenizer.eos_token_id

        alone = autoregressive_generate(inputs, target, max_gen_len=60, eos_tokens_id=ends, use_cache=True)
        output_ids, alpha = speculative_generate(inputs, drafter, target, tokenizer, gamma=4, max_gen_len=60, eos_tokens_id=ends, use_cache=True)
        print("Greedy:", tokenizer.decode(output_ids))
        print(f"Acceptance rate: {alpha:.3f}")
        if output_ids != alone or alpha <= 0:
            print("speculative_generate: the greedy text is not that of the target alone", file=sys.stderr)
            return 1

        nucleus = NucleusProcessor(temperature=.6, top_p=.9)
        output_ids, alpha = speculative_generate(inputs, drafter, target, tokenizer, logits_processor=nucleus, gamma=4, max_gen_len=20,
                                                 eos_tokens_id=ends, use_cache=True, debug=True, seed=7)
        print("Nucleus:", tokenizer.decode(output_ids))
    return 0


if __name__ == "__main__":
    sys.exit(main())
