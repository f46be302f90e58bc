// SPDX-License-Identifier: Apache-2.0
// cli/pair_gain.h: what speculation with a fixed draft length gains, estimated from runs of the
// longest and of the shortest drafts: from what rounds cost and from how far drafts came in them.
//
//   speed-up(K) = (1 + g_1 + ... + g_K) plain round /
//                 (passes(K) + d_1 begin + (d_1 + ... + d_K) draft + rest)
//
// with d_i the share of rounds that draft at least i tokens, and g_i the share of rounds in which
// drafts 1 to i are all accepted. A lookup that knows nothing in half of the rounds has d_1 = 0.5.
// passes(K) is the mean over rounds of m drafts, m up to K, of a pass of 1 + m rows.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "foretoken/measure.h"
#include "foretoken/stats.h"

namespace foretoken::cli {

// In microseconds.
struct RoundPrices {
  std::map<int, double> pass;  // by rows; one row is among them
  double begin = 0;            // of drafting at all in a round
  double draft = 0;            // of one more draft token
  double rest = 0;             // of a drafting round beside its pass and its drafts
  double plain = 0;            // of a whole round of plain decoding

  // Between measured rows, and beyond them, along straight lines.
  double Pass(int rows) const;
};

// By rows, of the passes behind `context`. A pass that took longer than one of more rows is taken
// for as short: something else was in its way.
std::map<int, double> PassesOf(const Measurements& measured, int context);

// Rounds of the same texts: without drafts, of at most one, and of the longest.
struct PairRounds {
  SpeculationStats plain, shortest, longest;
};

// The measured passes ran again and again. In real texts they take longer: other work stands
// between them. So they are scaled until they agree with the rounds. What the first draft of a
// round costs beside its share of a long draft is `begin`.
RoundPrices PricesOf(const Measurements& measured, int context, const PairRounds& rounds);

// Of all rounds of a run; [i] is of draft i + 1.
struct DraftShares {
  std::vector<double> drafted, gained;
  int most() const { return static_cast<int>(gained.size()); }
};
// Of n drafts; empty where nothing was drafted.
DraftShares SharesOf(const SpeculationStats& drafting, int n);
// As of drafts that every round makes, each of which is accepted in this share.
DraftShares SharesOf(double accepted, int n);

// Of a draft length within `shares`.
double Speedup(const RoundPrices& prices, const DraftShares& shares, int k);

struct BestLength {
  int k = 0;  // 0: plain decoding
  double speedup = 1;
};
BestLength BestLengthOf(const RoundPrices& prices, const DraftShares& shares);

// Measured survival of `n` positions, the probability that drafts 1 to i are all accepted where
// they are made: what was judged at each, the last known share going on where nothing was. Empty
// where nothing was drafted.
std::vector<double> SurvivalOf(const SpeculationStats& stats, int n);

// The share of accepted drafts, the same at each position, from which on the best of `most` draft
// lengths pays. Absent where not even drafts that are always right would.
std::optional<double> BreakEven(const RoundPrices& prices, int most);

}  // namespace foretoken::cli
