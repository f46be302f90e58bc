// SPDX-License-Identifier: Apache-2.0
// cli/pair/tune_trials.h: measures each drafter on this machine: first an estimate from one run,
// then the most promising ones in turn, and the chosen one once more in new runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/pair/pair_estimate.h"
#include "foretoken/engine.h"
#include "foretoken/tools/profile.h"

namespace foretoken::cli {

struct TunePlan {
  EngineOptions options;  // without a drafter
  Request request;
  std::vector<BenchPrompt> prompts;
  std::vector<std::string> draft_files;
  // The types of copies with which the model drafts for itself, as SpeculativeOptions::self_draft names
  // them. "off": none. Empty: some, as far as they are likely to pay and memory has room for them.
  std::vector<std::string> self_drafts = {};
  int most_drafts = 8;
  int repeats = 3;
  std::function<void(const std::string& what, double fraction)> on_progress;
};

// One way to draft.
struct TunedDrafter {
  std::string method, file;     // file: "" if it needs none, or if it is in the model's own file
  ProfileModel model;           // of the file; bytes 0 without one
  std::string self_draft = {};  // the types of the model's copy; "" if it needs none
  PairEstimate estimate;
};

// A drafter, a controller and a K, run beside plain decoding.
struct TuneTrial {
  std::size_t drafter = 0;  // index in Tuning::drafters
  std::string controller;
  int k = 0;                            // the most, if a controller chooses
  std::vector<double> speedups, rates;  // of each repeat

  Spread speedup() const { return SpreadOf(speedups); }
  Spread tokens_per_second() const { return SpreadOf(rates); }
};

struct Tuning {
  std::vector<std::string> notices;  // why a copy that was asked for was not tried
  Measurements measured;
  int context = 0;  // of the estimates: the smallest that was measured
  std::vector<TunedDrafter> drafters;
  std::vector<TuneTrial> trials;
  // One of the trials, run again, because the runs by which it was chosen are those in which it was
  // lucky. Absent if plain decoding stays.
  std::optional<TuneTrial> recommended;
  double rest_us = 0;  // of a round of plain decoding, besides its pass
  Spread plain_tokens_per_second;
  std::string isa;
  int threads = 0;
};

// Errors: those of the files and the prompts.
[[nodiscard]] Result<Tuning> Tune(const TunePlan& plan);

// The part of the results that engines read.
[[nodiscard]] Result<Profile> ProfileOf(const Tuning& tuning, const std::string& target);

// Tables of at most 100 columns.
std::string TuningTables(const Tuning& tuning, const Profile& profile, const std::string& path);
std::string TuningJson(const Tuning& tuning, const Profile& profile, const std::string& path);

}  // namespace foretoken::cli
