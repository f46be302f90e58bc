// SPDX-License-Identifier: Apache-2.0
// cli/pair_gain.h: what speculation gains by its prices and by how often drafts are accepted.
//
//   speed-up(K) = (1 + s_1 + ... + s_K) (pass(1) + rest) / (K draft + pass(1 + K) + rest)
// with s_i the probability that drafts 1 to i are all accepted.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "foretoken/measure.h"
#include "foretoken/stats.h"

namespace foretoken::cli {

// In microseconds.
struct RoundPrices {
  std::map<int, double> pass;  // by rows; one row is among them
  double draft = 0;            // of one more draft token
  double rest = 0;             // of a round beside its pass and its drafts

  // Between measured rows, and beyond them, along straight lines.
  double Pass(int rows) const;
};

// Of the passes behind `context`. A pass that took longer than one of more rows is taken for as
// short: something else was in its way.
RoundPrices PricesOf(const Measurements& measured, int context, double draft_us, double rest_us);

// Of a draft length within `survival`, [s_1, s_2, ...].
double Speedup(const RoundPrices& prices, std::span<const double> survival, int k);

struct BestLength {
  int k = 0;  // 0: plain decoding
  double speedup = 1;
};
BestLength BestLengthOf(const RoundPrices& prices, std::span<const double> survival);

// Measured survival of `n` positions: what was judged at each, the last known share going on where
// nothing was. Empty where nothing was drafted.
std::vector<double> SurvivalOf(const SpeculationStats& stats, int n);

// The share of accepted drafts, the same at each position, from which on the best of `most` draft
// lengths pays. Absent where not even drafts that are always right would.
std::optional<double> BreakEven(const RoundPrices& prices, int most);

}  // namespace foretoken::cli
