// SPDX-License-Identifier: Apache-2.0
// lab/pair_gain.h: estimates the speed-up of a fixed draft length from runs of the longest and of
// the shortest drafts: from the costs of rounds, and from how many drafts were accepted.
//
//   speed-up(K) = (1 + g_1 + ... + g_K) plain round /
//                 (passes(K) + d_1 begin + (d_1 + ... + d_K) draft + rest)
//
// with d_i the share of rounds that draft at least i tokens, and g_i the share of rounds in which
// drafts 1 to i are all accepted. A lookup that has no draft in half of the rounds has d_1 = 0.5.
// passes(K) is the mean over rounds of m drafts, m up to K, of a pass of 1 + m rows.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "foretoken/stats.h"
#include "foretoken/tools/measure.h"

namespace foretoken::lab {

// In microseconds.
struct RoundPrices {
  std::map<int, double> pass;  // by rows; one row is among them
  double begin = 0;            // of drafting at all in a round
  double draft = 0;            // of one more draft token
  double rest = 0;             // of a drafting round besides its pass and its drafts
  double plain = 0;            // of a whole round of plain decoding

  // Interpolates and extrapolates along straight lines.
  double Pass(int rows) const;
};

// By rows, for the passes behind `context`. A pass that took longer than one of more rows gets the
// shorter time, because something disturbed it.
std::map<int, double> PassesOf(const Measurements& measured, int context);

// Rounds of the same texts: without drafts, of at most one, and of the longest.
struct PairRounds {
  SpeculationStats plain, shortest, longest;
};

// The measured passes ran again and again. In real texts passes take longer, because other work
// runs between them, so the measured ones are scaled to agree with the rounds. `begin` is the cost
// of the first draft of a round besides its share of a long draft.
RoundPrices PricesOf(const Measurements& measured, int context, const PairRounds& rounds);

// What a draft costs the controller of an engine: one more token, or, where the drafter makes all tokens of
// a round at once, those of a mean round. drafting: the rounds of the longest drafts.
double DraftPriceOf(const RoundPrices& prices, const SpeculationStats& drafting, bool at_once);

// Shares of all rounds of a run; [i] is for draft i + 1.
struct DraftShares {
  std::vector<double> drafted, gained;
  int most() const { return static_cast<int>(gained.size()); }
};
// For n drafts; empty if nothing was drafted.
DraftShares SharesOf(const SpeculationStats& drafting, int n);
// As if every round made the drafts and each was accepted with this share.
DraftShares SharesOf(double accepted, int n);

// For a draft length within `shares`.
double Speedup(const RoundPrices& prices, const DraftShares& shares, int k);

// The speed-ups of runs with one draft a round, and with the longest drafts.
struct MeasuredSpeedups {
  double shortest = 1, longest = 1;
};
// Scales the passes of several rows so that these two speed-ups are what the prices estimate; lengths
// between them follow in equal steps. What a round costs besides its passes and drafts, and moments
// in which one price was measured and not another, is then in no estimate.
void Agree(const MeasuredSpeedups& measured, const DraftShares& shares, RoundPrices& prices);

struct BestLength {
  int k = 0;  // 0: plain decoding
  double speedup = 1;
};
BestLength BestLengthOf(const RoundPrices& prices, const DraftShares& shares);

// Measured survival of `n` positions: the probability that drafts 1 to i are all accepted where
// they are made. Positions without verdicts use the last known share. Empty if nothing was drafted.
std::vector<double> SurvivalOf(const SpeculationStats& stats, int n);

// The least share of accepted drafts, the same at each position, at which the best of `most` draft
// lengths pays. Absent if even perfect drafts would not.
std::optional<double> BreakEven(const RoundPrices& prices, int most);

}  // namespace foretoken::lab
