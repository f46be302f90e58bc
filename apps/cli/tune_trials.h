// SPDX-License-Identifier: Apache-2.0
// cli/tune_trials.h: what each drafter gives on this machine, first by prices and accepted drafts,
// then by the clock.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench_prompts.h"
#include "cli/pair_gain.h"
#include "cli/pair_runs.h"
#include "foretoken/engine.h"
#include "foretoken/profile.h"

namespace foretoken::cli {

struct TunePlan {
  EngineOptions options;  // without a drafter
  Request request;
  std::vector<BenchPrompt> prompts;
  std::vector<std::string> draft_files;
  int most_drafts = 8;
  int repeats = 3;
  std::function<void(const std::string& what, double fraction)> on_progress;
};

// One way to draft.
struct TunedDrafter {
  std::string method, file;  // file "" where it needs none, or where it is the model's own
  ProfileModel model;        // of the file; bytes 0 without one
  double draft_us = 0;
  SpeculationStats stats;
  std::vector<double> survival;
  BestLength expected;
};

// A drafter, a controller and a K, run beside plain decoding.
struct TuneTrial {
  std::size_t drafter = 0;  // index in Tuning::drafters
  std::string lookahead;
  int k = 0;  // the most, where a controller chooses
  Spread speedup, tokens_per_second;
};

struct Tuning {
  Measurements measured;
  int context = 0;  // of the prices: the smallest that was measured
  RoundPrices prices;
  std::vector<TunedDrafter> drafters;
  std::vector<TuneTrial> trials;
  Spread plain_tokens_per_second;
  std::string isa;
  int threads = 0;

  // Null where nothing was clearly faster than plain decoding.
  const TuneTrial* Best() const;
};

// Errors: those of the files and the prompts.
[[nodiscard]] Result<Tuning> Tune(const TunePlan& plan);

// The part of a tuning that engines read.
[[nodiscard]] Result<Profile> ProfileOf(const Tuning& tuning, const std::string& target);

// Tables of at most 100 columns.
std::string TuningTables(const Tuning& tuning, const Profile& profile, const std::string& path);
std::string TuningJson(const Tuning& tuning, const Profile& profile, const std::string& path);

}  // namespace foretoken::cli
