// SPDX-License-Identifier: Apache-2.0
// draft_length/round_costs.h: what a round costs on this machine with these models: the target's passes
// by rows and context, drafts by drafter, and what the host adds. Begun with what was measured
// before, kept fresh while the engine runs.
//
// One for an engine. Readings are kept by rows and band of context, relative to the machine's level
// of the moment: it moves fast and concerns all rows alike, so that what was last read in a slow
// minute is not taken for dear in a quick one. More rows never cost less: where readings say so,
// each counts as often as it was made (isotonic regression, by pooling neighbours that disagree).
// What was never read is estimated from its neighbours along the curve that was measured at the
// start; nothing is believed beyond the measured rows or twice those that were seen.
#pragma once

#include <span>
#include <vector>

#include "foretoken/tools/measure.h"

namespace foretoken::draft_length {

class RoundCosts {
 public:
  // max_rows: of a pass; max_sequences: that may draft together.
  RoundCosts(int max_rows, int n_drafters, int max_sequences = 1);

  // Measured costs, medians, before the first reading. The smallest context is the curve's; others
  // say what a row and position of context add.
  void Start(std::span<const PassCost> passes) noexcept;
  // One more draft of one sequence, and of each of all that may run (0: not known).
  void StartDrafter(int drafter, double one_us, double all_us, double row_us) noexcept;

  // A pass of the target that only decoded, `context` positions before a row in the mean; proposals
  // of `drafts` tokens in all, the longest of `longest`; rows that a drafter had to read before
  // them; the rest of the round.
  void SeePass(int rows, int context, double us) noexcept;
  void SeeDrafts(int drafter, int drafts, int longest, double us) noexcept;
  void SeeCatchUp(int drafter, int rows, double us) noexcept;
  void SeeRest(double us) noexcept;

  bool known() const noexcept { return seen_rows_ > 0 || !start_.empty(); }
  double PassUs(int rows, int context) const noexcept;  // > 0 once known
  // One more draft of each of `sequences`, which share the drafter's passes; 0 for none.
  double DraftUs(int drafter, int sequences) const noexcept;
  // Proposals as SeeDrafts has them.
  double DraftsUs(int drafter, int drafts, int longest) const noexcept;
  double CatchUpUs(int drafter, int rows) const noexcept { return rows * At(drafter).row_us; }
  double RestUs() const noexcept { return rest_us_; }
  // How far passes lie from PassUs of late, as a share of it.
  double Unrest() const noexcept { return unrest_; }
  // Of passes that were measured at the start or read since, ascending.
  std::vector<int> KnownRows() const;
  // Most rows that may be planned for.
  int TrustedRows() const noexcept;

 private:
  static constexpr int kBands = 12;  // below 512 positions, 1024, 2048, ...
  struct Point {
    int rows;
    double us;
  };
  struct DrafterCosts {
    std::vector<double> draft_us;  // [max_sequences + 1], by sequences; 0: never read
    double row_us = 0;
  };
  static double Moved(double known, double seen) noexcept;
  static int Together(int drafts, int longest) noexcept;
  static int BandOf(int context) noexcept;
  const DrafterCosts& At(int drafter) const { return drafters_[static_cast<std::size_t>(drafter)]; }
  double Curve(int rows, int context) const noexcept;
  struct Reading {
    double us = 0;  // over the level; 0: none yet
    int n = 0;
    double risen = 0;  // us, so that it does not fall with the rows
  };
  using Band = std::vector<Reading>;  // [max_rows + 1], by rows
  struct Pool {
    double us, weight;
    int last;  // rows
  };
  double Off(double us, double expected) const noexcept;
  void MoveLevel(double off) noexcept;
  void Raise(Band& band) noexcept;
  double Estimate(const Band& band, int rows, int context) const noexcept;

  std::vector<Point> start_;  // ascending rows, without context
  double position_us_ = 0;    // what a row pays for a position of context
  std::vector<Band> bands_;   // [kBands]
  std::vector<Pool> pools_;
  double level_ = 1;   // of the moment
  double unrest_ = 0;  // how far passes lie from what is expected, in the mean of late
  int n_aside_ = 0;    // the last ones that lay far off; < 0: below
  int seen_rows_ = 0;  // the most that were read
  std::vector<DrafterCosts> drafters_;
  double rest_us_ = 0;
};

}  // namespace foretoken::draft_length
