#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""speculative_config.py [TARGET DRAFT]: Modular MAX's SpeculativeConfig and LLM.

Three configurations give one greedy text: none drafts, a draft model does, and an n-gram lookup. A wrong value is an error that names it.
"""
import dataclasses
import sys

from foretoken import Error, bundled_models
from foretoken.faces import LLM, PipelineConfig, SpeculativeConfig

PROMPTS = ["Once upon a time", "The fox", "There was a king"]


def main() -> int:
    paths = sys.argv[1:] or [bundled_models() / "tales-9m-q8_0.gguf", bundled_models() / "tales-1m-draft-q8_0.gguf"]
    standalone = SpeculativeConfig(speculative_method="standalone", num_speculative_tokens=3)
    try:
        dataclasses.replace(standalone, num_speculative_tokens=65)
    except Error as error:
        print(error)
    found = {}
    for name, draft, speculative in (("plain", None, SpeculativeConfig()), ("standalone", paths[1], standalone),
                                     ("ngram", None, dataclasses.replace(standalone, speculative_method="ngram"))):
        with LLM(PipelineConfig(paths[0], draft, speculative, max_length=256, max_batch_size=3)) as llm:
            found[name] = llm.generate(PROMPTS, max_new_tokens=50)
            drafted, accepted = (sum(done.statistics[key] for done in llm.completions) for key in ("drafted", "accepted"))
            print(f"{name}: {accepted} of {drafted} drafts accepted")
    for prompt, response in zip(PROMPTS, found["standalone"]):
        print(prompt + response)
    if not found["plain"] == found["standalone"] == found["ngram"]:
        print("speculative_config: a configuration changes the greedy text", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
