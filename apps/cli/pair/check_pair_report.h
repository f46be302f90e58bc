// SPDX-License-Identifier: Apache-2.0
// cli/pair/check_pair_report.h: the results of `check-pair`, for people; check_pair_json.cpp writes
// them for programs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/pair/pair_estimate.h"
#include "foretoken/engine.h"
#include "lab/check_pair_fit.h"
#include "lab/vocabulary_loss.h"

namespace foretoken::cli {

// Measurements of the loaded pair.
struct PairMeasurement {
  std::unique_ptr<Engine> engine;
  std::string controller;  // of the user's options
  int most = 0;            // drafts of a round
  BenchRow as_set;         // decoded as those options say: what `bench` measures
  PairEstimate estimate;   // of fixed lengths
  // Decoded with the fixed length that has the best estimate; absent if none pays.
  std::optional<BenchRow> best;

  // Whether that was faster than as_set: both are compared with plain decoding in turn.
  bool BestIsFaster() const { return best && best->speedup->median > as_set.speedup->median; }
};

struct PairCheck {
  lab::PairFit fit;
  std::string obstacle;  // why the pair does not work; "" if it does
  const Request* request = nullptr;
  int prompts = 0, repeats = 0;
  std::optional<PairMeasurement> measured;
  std::optional<lab::VocabularyLoss> loss = {};  // where the draft has another vocabulary

  // One or two sentences.
  std::string Recommendation() const;
};

// all: also memory, the costs of passes and drafts, and the estimates that follow from them.
std::string PairTables(const PairCheck& check, bool all);
std::string PairJson(const PairCheck& check);

}  // namespace foretoken::cli
