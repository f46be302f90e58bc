#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""standalone_pipeline.py [TARGET DRAFT]: batches of two replicas, one step at a time, as Modular MAX's pipeline runs them.

Requests come, pause and go; the last part makes one step from its parts. Each text is the one that its request has alone.
"""
import sys

from foretoken import bundled_models
from foretoken.faces import Model, PipelineConfig, SpeculativeConfig, StandaloneSpeculativeDecodingPipeline
from foretoken.faces.text_generation import SamplingParams, TextContext, TextGenerationInputs


def one_step(pipeline, batch):
    """What `execute` does."""
    inputs, num_steps = pipeline.prepare_batch(None, batch, [batch], num_steps=4, is_draft=True)
    generated, tokens, logits, inputs, all_logits = pipeline.generate_draft_tokens(batch, num_steps, inputs)
    merged = pipeline.merge_draft_tokens(inputs, tokens)
    rejected, recovered, bonus = pipeline.verify_draft_tokens_with_target_model(
        inputs, batch, [batch], generated, tokens, logits, merged.tokens, merged.input_row_offsets, all_logits)
    pipeline.update_contexts(batch, rejected, recovered, bonus, tokens, generated)
    return pipeline.build_response(batch)


def run(pipeline, fox, king, girl):
    step = 0
    while not (fox.is_done and king.is_done and girl.is_done):
        resting = step % 2 == 1  # the king takes part in every second step
        pipeline.execute(TextGenerationInputs(batches=[[fox] if resting else [fox, king], [girl]]))
        step += 1


def main() -> int:
    paths = sys.argv[1:] or [bundled_models() / "tales-9m-q8_0.gguf", bundled_models() / "tales-1m-draft-q8_0.gguf"]
    config = PipelineConfig(paths[0], paths[1], SpeculativeConfig("standalone", num_speculative_tokens=3), max_length=256, max_batch_size=4)
    with StandaloneSpeculativeDecodingPipeline(config) as pipeline, Model(paths[0], context_size=256) as target:
        sampled = SamplingParams(top_k=0, temperature=0.8, seed=7)
        fox = TextContext(40, target.encode("The fox"), "fox")
        king = TextContext(30, target.encode("There was a king"), "king", sampling_params=sampled)
        girl = TextContext(50, target.encode("Once upon a time there was a girl"), "girl")
        run(pipeline, fox, king, girl)
        late = TextContext(30, target.encode("One day"), "late")
        while not late.is_done:
            one_step(pipeline, [late])
        print(pipeline.metrics)

        for context in (fox, king, girl, late):
            print(f"{context.request_id}: {target.decode(context.tokens)}")
            options = {**context.sampling_params.request_options(), "max_new_tokens": context.max_new_tokens}
            if target.engine().generate(context.prompt_tokens, **options).result().tokens != context.generated_tokens:
                print(f"standalone_pipeline: {context.request_id} has another text alone", file=sys.stderr)
                return 1
            pipeline.release(context.request_id)
    return 0 if pipeline.metrics.get_stats()["draft_tokens_accepted"] > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
