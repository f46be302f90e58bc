// SPDX-License-Identifier: Apache-2.0
// cli/bench/bench_report.h: the results of `bench`, for people; bench_json.h writes them for
// programs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/bench/bench_runs.h"
#include "cli/machine.h"
#include "foretoken/engine.h"
#include "foretoken/stats.h"

namespace foretoken::cli {

struct Bench {
  const EngineSummary* engine = nullptr;
  Machine machine;
  int passes = 0;  // repeats of each pass
  Measurements measured;
  int n_prompts = 0, repeats = 0;
  const Request* request = nullptr;
  BenchRuns runs;
  EngineCounts counts;  // of the runs

  // The smallest context whose passes were measured; one row is always among them.
  int context() const { return measured.target.front().context; }
  double one_row_us() const { return measured.target.front().us.median; }
  const PassCost* one_draft() const { return measured.DraftCost(1, context()); }
  // Gigabytes of weights that a pass reads each second.
  double weights_gb_per_s(const PassCost& pass) const {
    const std::int64_t bytes = pass.read_bytes > 0 ? pass.read_bytes : engine->target.weight_bytes;
    return static_cast<double>(bytes) / pass.us.median / 1e3;
  }
  // The share of a step of plain decoding, and of one more draft, that is not the passes'
  // arithmetic.
  double target_overhead() const {
    return measured.overhead.target_us() / (one_row_us() + measured.overhead.verify_us);
  }
  std::optional<double> draft_overhead() const {
    if (one_draft() == nullptr || engine->draft_model == nullptr) return std::nullopt;
    return measured.overhead.draft_us() / one_draft()->us.median;
  }
};

// Distinct experts of passes in the mean of the layers with experts, by the rows of the passes:
// measured ones, whose tokens are random, at the smallest context, and those of the runs.
struct ExpertsByRows {
  std::vector<std::pair<std::string, double>> measured, decoding;
};
ExpertsByRows ExpertsOf(const Bench& bench);

// Tables at most 100 columns wide.
std::string BenchTables(const Bench& bench);

}  // namespace foretoken::cli
