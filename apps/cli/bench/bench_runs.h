// SPDX-License-Identifier: Apache-2.0
// cli/bench/bench_runs.h: plain and speculative decoding of the same prompts, in turn, on one engine.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/bench_prompts.h"
#include "foretoken/engine.h"

namespace foretoken::cli {

// Some of the prompts at one batch size, over all repeats.
struct BenchRow {
  std::string kind;  // "" for all prompts
  int batch = 1;
  int prompts = 0;
  Spread plain;                       // tokens per second, all requests together
  std::optional<Spread> speculative;  // absent without a drafter
  std::optional<Spread> speedup;      // ratio of neighbouring runs
  SpeculationStats plain_stats;       // of the plain runs: their rounds and times
  SpeculationStats stats;             // of the speculative runs
};

struct BenchRuns {
  std::vector<BenchRow> batches;  // all prompts, by batch size
  std::vector<BenchRow> kinds;    // at batch 1, in the prompts' order; empty if there is only one
  std::string strategy;           // the one that verified
  // All texts of a prompt were the same token by token; absent if they need not be.
  std::optional<bool> identical;
};

struct RunPlan {
  Request request;  // for every prompt, except text and id
  std::vector<BenchPrompt> prompts;
  std::vector<int> batches;
  int repeats = 1;
  // If the repeats decode for less than this, there are more of them, up to 5 times as many: a
  // median of short runs needs more values.
  double least_seconds = 0;
  std::function<void(int run, int runs)> on_run = {};  // from 1
};

// Errors: those of a prompt, with its origin; kInvalidArgument if nothing was decoded.
[[nodiscard]] Result<BenchRuns> RunInTurn(Engine& engine, const RunPlan& plan);

}  // namespace foretoken::cli
