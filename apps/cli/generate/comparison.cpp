// SPDX-License-Identifier: Apache-2.0
#include "cli/generate/comparison.h"

#include <algorithm>
#include <vector>

#include "cli/terminal.h"

namespace foretoken::cli {
namespace {

constexpr int kRepeats = 3;

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

Result<std::optional<Comparison>> Compare(Engine& engine, const Request& request,
                                          const std::function<void(int run, int runs)>& on_run) {
  Comparison comparison{.repeats = kRepeats};
  std::vector<double> speculative_ms, plain_ms;
  std::vector<std::int32_t> token_ids;
  for (int run = 0; run < 2 * kRepeats; ++run) {
    on_run(run + 1, 2 * kRepeats);
    engine.Forget();  // else the text of an earlier run would be drafted whole
    const bool plain = run % 2 == 0;
    Request one = request;
    one.speculative.enabled = !plain;
    FORETOKEN_TRY(const Completion completion, engine.Generate(one, [](const RoundEvent&) {
      return !InterruptGuard::interrupted();
    }));
    const Timings& timings = completion.timings;
    if (completion.finish_reason == FinishReason::kCancelled || timings.decoded_tokens == 0) {
      return std::optional<Comparison>();
    }
    (plain ? plain_ms : speculative_ms).push_back(timings.decode_ms / timings.decoded_tokens);
    if (run == 0) token_ids = completion.token_ids;
    if (!plain) comparison.speculation.Add(completion.speculation);
    comparison.identical = comparison.identical && completion.token_ids == token_ids;
  }
  comparison.plain_ms_per_token = Median(plain_ms);
  comparison.speculative_ms_per_token = Median(speculative_ms);
  return std::optional<Comparison>(comparison);
}

}  // namespace foretoken::cli
