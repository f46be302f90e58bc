// SPDX-License-Identifier: Apache-2.0
// cli/pair/certify_distribution.h: tests by counting whether speculation draws tokens from plain decoding's
// distribution.
//
// Short texts after a context are drawn again and again: by plain decoding, by speculation, and, as
// the negative control, by speculation with a rule that is known to change the distribution. Tokens
// 2 to 4 (the first is the prefill's) and the pair of 2 and 3 are compared with plain decoding's by
// a chi-square test. Speculation must pass it, and the control must fail: a test that the control
// passes could not have detected an error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/bench/bench_prompts.h"
#include "foretoken/engine.h"
#include "lab/chi_square.h"

namespace foretoken::cli {

struct DistributionPlan {
  Request request;  // sampling, seed, draft length
  std::vector<BenchPrompt> prompts;
  int samples = 20'000;       // for each kind and context
  int most_samples = 80'000;  // they are doubled up to this while the control passes
  std::function<void(const std::string& what, double fraction)> on_progress;
};

struct DistributionTest {
  std::string origin;  // of the context
  std::string tokens;  // "2", "2 and 3"
  lab::Comparability speculation, control;
};

struct DistributionVerdict {
  std::string strategy, control;  // "residual", "residual without adjustment"
  int samples = 0;
  double acceptance_rate = 0;  // of drafts
  double level = 0;            // of each test: 0.001 for all together
  std::vector<DistributionTest> tests;

  bool passed() const;          // speculation passed all tests
  bool control_failed() const;  // the control failed at least one
};

// The options of the control's engine: like `options`, but with a rule that changes the
// distribution. If `strategy` (of the engine under test) is residual, tokens after a rejection are
// drawn from the target's whole distribution; otherwise the rule is typical acceptance. `name`
// receives the rule's name.
EngineOptions ControlOptions(EngineOptions options, const std::string& strategy, std::string& name);

// The strategy by which the engine verifies such requests.
[[nodiscard]] Result<std::string> StrategyOf(Engine& engine, const DistributionPlan& plan);

// Errors: those of a prompt, with its origin; kInvalidArgument if nothing was drafted.
[[nodiscard]] Result<DistributionVerdict> TestDistribution(Engine& engine, Engine& control,
                                                           const DistributionPlan& plan);

}  // namespace foretoken::cli
