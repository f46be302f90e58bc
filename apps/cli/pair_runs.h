// SPDX-License-Identifier: Apache-2.0
// cli/pair_runs.h: the prompts once, one after another, and what came of it.
#pragma once

#include <functional>
#include <vector>

#include "cli/bench_prompts.h"
#include "foretoken/engine.h"

namespace foretoken::cli {

struct PromptsRun {
  double decode_ms = 0, tokens = 0;  // the prompts' own reading and first tokens left out
  SpeculationStats stats;

  double tokens_per_second() const { return decode_ms > 0 ? 1000 * tokens / decode_ms : 0; }
  // Of a round, beside its pass and its drafts.
  double rest_us() const {
    return stats.rounds > 0 ? 1000 * stats.overhead_ms / static_cast<double>(stats.rounds) : 0;
  }
  // Of one draft token.
  double draft_us() const {
    const double ms = stats.draft_ms - stats.draft_prompt_ms;
    return stats.drafted > 0 && ms > 0 ? 1000 * ms / static_cast<double>(stats.drafted) : 0;
  }
};

// `request` is every prompt's, but for text and id. Errors: those of a prompt, named by its origin.
[[nodiscard]] Result<PromptsRun> RunPrompts(Engine& engine, const Request& request,
                                            const std::vector<BenchPrompt>& prompts,
                                            const std::function<void(double)>& on_progress = {});

// A few tokens with and without drafts: the first run pays for memory that nobody has touched.
[[nodiscard]] Status WarmUp(Engine& engine, const Request& request);

}  // namespace foretoken::cli
