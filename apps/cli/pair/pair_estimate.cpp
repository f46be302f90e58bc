// SPDX-License-Identifier: Apache-2.0
#include "cli/pair/pair_estimate.h"

#include <algorithm>

namespace foretoken::cli {
namespace {

// The least of each price: other work on the machine only makes it higher.
lab::RoundPrices Least(const std::vector<lab::RoundPrices>& runs) {
  lab::RoundPrices least = runs.front();
  for (const lab::RoundPrices& run : runs) {
    for (auto& [rows, us] : least.pass) us = std::min(us, run.pass.at(rows));
    // From one run: prices of two runs would not belong together.
    if (run.begin + run.draft < least.begin + least.draft)
      least.begin = run.begin, least.draft = run.draft;
    least.rest = std::min(least.rest, run.rest);
    least.plain = std::min(least.plain, run.plain);
  }
  return least;
}

}  // namespace

RunPlan PlanOf(const Request& request, const std::vector<BenchPrompt>& prompts, int repeats) {
  constexpr double kLeastSeconds = 2;
  return {.request = request,
          .prompts = prompts,
          .batches = {1},
          .repeats = repeats,
          .least_seconds = kLeastSeconds,
          .on_run = {}};
}

Result<PairEstimate> EstimatePair(Engine& engine, const RunPlan& plan, const Measurements& measured,
                                  int context, int most) {
  RunPlan once = plan, shortest = plan;
  once.repeats = shortest.repeats = 1, once.least_seconds = shortest.least_seconds = 0;
  once.request.speculative.num_speculative_tokens = most;
  shortest.request.speculative.num_speculative_tokens = 1;
  std::vector<lab::RoundPrices> prices;
  std::vector<double> of_longest, of_shortest;  // speed-ups
  PairEstimate estimate;
  for (int repeat = 0; repeat < plan.repeats; ++repeat) {
    FORETOKEN_TRY(const BenchRuns longest_runs, RunInTurn(engine, once));
    FORETOKEN_TRY(const BenchRuns shortest_runs, RunInTurn(engine, shortest));
    const BenchRow &row = longest_runs.batches.front(), &one = shortest_runs.batches.front();
    of_longest.push_back(row.speedup->median), of_shortest.push_back(one.speedup->median);
    prices.push_back(
        lab::PricesOf(measured, context,
                      {.plain = row.plain_stats, .shortest = one.stats, .longest = row.stats}));
    estimate.stats = row.stats;  // the same in every run, except its times
  }
  estimate.prices = Least(prices);
  estimate.shares = lab::SharesOf(estimate.stats, most);
  lab::Agree({.shortest = SpreadOf(std::move(of_shortest)).median,
              .longest = SpreadOf(std::move(of_longest)).median},
             estimate.shares, estimate.prices);
  estimate.survival = lab::SurvivalOf(estimate.stats, most);
  estimate.best = lab::BestLengthOf(estimate.prices, estimate.shares);
  estimate.break_even = lab::BreakEven(estimate.prices, most);
  return estimate;
}

}  // namespace foretoken::cli
