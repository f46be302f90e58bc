// SPDX-License-Identifier: Apache-2.0
#include "cli/pair_runs.h"

namespace foretoken::cli {

Result<PromptsRun> RunPrompts(Engine& engine, const Request& request,
                              const std::vector<BenchPrompt>& prompts,
                              const std::function<void(double)>& on_progress) {
  PromptsRun run;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    Request one = request;
    one.prompt = prompts[i].text;
    one.id = i;
    auto completion = engine.Generate(one);
    if (!completion) return Fail(std::move(completion).error().In(prompts[i].origin));
    run.decode_ms += completion->timings.decode_ms;
    run.tokens += completion->timings.decoded_tokens;
    run.stats.Add(completion->speculation);
    if (on_progress) on_progress(static_cast<double>(i + 1) / static_cast<double>(prompts.size()));
  }
  return run;
}

Status WarmUp(Engine& engine, const Request& request) {
  for (const bool speculates : {false, true}) {
    Request one = request;
    one.prompt = "A";
    one.speculative.enabled = speculates;
    one.max_new_tokens = 8;
    one.min_new_tokens = 0;
    FORETOKEN_CHECK_OK(engine.Generate(one));
  }
  return {};
}

}  // namespace foretoken::cli
