// SPDX-License-Identifier: Apache-2.0
// cli/pair/pair_estimate.h: estimates the speed-up of a drafter for each fixed draft length from a
// few runs of all prompts: plain, with the longest drafts and with the shortest.
#pragma once

#include <optional>
#include <vector>

#include "cli/bench/bench_runs.h"
#include "foretoken/engine.h"
#include "lab/pair_gain.h"

namespace foretoken::cli {

struct PairEstimate {
  lab::RoundPrices prices;
  SpeculationStats stats;  // of the run with drafts
  lab::DraftShares shares;
  std::vector<double> survival;  // see lab::SurvivalOf
  lab::BestLength best;
  std::optional<double> break_even;
};

// The engine's controller is `fixed`; `most` is the longest draft. `measured` has passes of
// 1 to 1 + most rows behind `context`. Prices are the least of the plan's repeats. Errors: as RunInTurn.
[[nodiscard]] Result<PairEstimate> EstimatePair(Engine& engine, const RunPlan& plan,
                                                const Measurements& measured, int context,
                                                int most);

// A plan for requests one after another.
RunPlan PlanOf(const Request& request, const std::vector<BenchPrompt>& prompts, int repeats);

}  // namespace foretoken::cli
