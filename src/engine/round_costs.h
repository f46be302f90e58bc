// SPDX-License-Identifier: Apache-2.0
// engine/round_costs.h: what a round costs on this machine with these models, kept fresh while it
// runs: the target's passes by rows, a draft, and what the host adds.
//
// One for an engine. A pass that was never seen is estimated from those that were, so that more
// rows never cost less; nothing is believed beyond twice the rows that were seen.
#pragma once

#include <vector>

namespace foretoken::engine {

class RoundCosts {
 public:
  // max_rows: of a pass. draft_share: a draft's price in passes of one row, a guess until the first
  // one is seen.
  RoundCosts(int max_rows, double draft_share);

  // A pass of the target that only decoded; a proposal of `drafts` tokens; the rest of the round.
  void SeePass(int rows, double us) noexcept;
  void SeeDrafts(int drafts, double us) noexcept;
  void SeeRest(double us) noexcept;

  bool known() const noexcept { return seen_rows_ > 0; }  // a pass was seen
  double PassUs(int rows) const noexcept;                 // > 0 once known
  double DraftUs() const noexcept;                        // one draft
  double RestUs() const noexcept { return rest_us_; }
  // Most rows that may be planned for.
  int TrustedRows() const noexcept { return 2 * seen_rows_; }

 private:
  static double Moved(double known, double seen) noexcept;
  double SlopeBeyond(int most) const noexcept;

  std::vector<double> pass_us_;  // [max_rows + 1], by rows; 0: never seen
  int seen_rows_ = 0;            // the most that were
  double draft_share_, draft_us_ = 0, rest_us_ = 0;
};

}  // namespace foretoken::engine
