// SPDX-License-Identifier: Apache-2.0
// cli/check_pair_report.h: what `check-pair` found, for people; check_pair_json.cpp writes it for
// programs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/check_pair_fit.h"
#include "cli/pair_gain.h"
#include "cli/pair_runs.h"
#include "foretoken/engine.h"

namespace foretoken::cli {

// What the loaded pair did.
struct PairMeasurement {
  std::unique_ptr<Engine> engine;
  RoundPrices prices;
  PromptsRun plain, speculative;
  std::vector<double> survival;
  BestLength best;
  std::optional<double> break_even;
};

struct PairCheck {
  PairFit fit;
  std::string obstacle;  // why the pair does not work; "" where it does
  const Request* request = nullptr;
  int prompts = 0;
  std::optional<PairMeasurement> measured;

  // In a sentence or two.
  std::string Recommendation() const;
};

std::string PairTables(const PairCheck& check);
std::string PairJson(const PairCheck& check);

}  // namespace foretoken::cli
