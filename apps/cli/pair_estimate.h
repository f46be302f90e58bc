// SPDX-License-Identifier: Apache-2.0
// cli/pair_estimate.h: what a drafter promises at each fixed draft length, from a few runs of all
// the prompts: plainly, with the longest drafts and with the shortest.
#pragma once

#include <optional>
#include <vector>

#include "cli/bench_runs.h"
#include "cli/pair_gain.h"
#include "foretoken/engine.h"

namespace foretoken::cli {

struct PairEstimate {
  RoundPrices prices;
  SpeculationStats stats;  // of the run with drafts
  DraftShares shares;
  std::vector<double> survival;  // see SurvivalOf
  BestLength best;
  std::optional<double> break_even;
};

// The engine's controller is `fixed`; `most` is the longest draft. `measured` has passes of 1 to 1
// + most rows behind `context`. Prices are the least of the plan's repeats. Errors: as RunInTurn.
[[nodiscard]] Result<PairEstimate> EstimatePair(Engine& engine, const RunPlan& plan,
                                                const Measurements& measured, int context,
                                                int most);

// A plan for requests one after another.
RunPlan PlanOf(const Request& request, const std::vector<BenchPrompt>& prompts, int repeats);

}  // namespace foretoken::cli
