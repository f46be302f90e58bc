// SPDX-License-Identifier: Apache-2.0
// cli/generate/generation.h: the result of one `generate`, for people (statistics.h) and for
// programs (json_report.h).
#pragma once

#include <optional>
#include <string>

#include "foretoken/engine.h"
#include "foretoken/stats.h"

namespace foretoken::cli {

// Speculative and plain decoding of one request, run in turn; medians.
struct Comparison {
  int repeats = 0;
  double speculative_ms_per_token = 0, plain_ms_per_token = 0;
  bool identical = true;         // the token ids of all runs
  SpeculationStats speculation;  // of the speculative runs together
  double speedup() const { return plain_ms_per_token / speculative_ms_per_token; }
};

struct Generation {
  const EngineSummary* engine = nullptr;
  const Completion* completion = nullptr;
  const SpeculativeOptions* config = nullptr;  // the requested settings
  std::string strategy;                        // the one that verified, never "auto"
  bool greedy = false;                         // the request's temperature is 0
  EngineCounts counts;                         // of the rounds of this request
  std::optional<Comparison> comparison;
};

// 1000 * n / ms, absent where one of them is 0.
inline std::optional<double> PerSecond(double n, double ms) {
  if (!(n > 0) || !(ms > 0)) return std::nullopt;
  return 1000.0 * n / ms;
}

}  // namespace foretoken::cli
