// SPDX-License-Identifier: Apache-2.0
// draft_length/referee.h: decides by results whether drafts pay: tokens per time with drafts
// against without, separately for each number of sequences that decode together.
//
// The cost model predicts. It cannot see everything (other programs, drafts that wake threads,
// costs that were measured in a bad moment), so it can be wrong for long. So after some passes with
// drafts a few passes are made plainly. If those were faster, drafting is suspended, for longer
// each time that a trial confirms it. If drafts pay, plain passes become rare.
#pragma once

#include <vector>

namespace foretoken::draft_length {

class Referee {
 public:
  explicit Referee(int max_sequences);

  enum class Decision {
    kDraft,      // as planned
    kCompare,    // plainly, for the comparison
    kSuspended,  // plainly, because drafts were slower
  };
  // For the next pass, with n sequences.
  Decision Next(int n) const noexcept;
  // Records a pass of n sequences without prompt rows and other measurements: its tokens and time.
  void Record(int n, bool drafted, int tokens, double us) noexcept;

 private:
  struct Sum {
    double tokens = 0, us = 0;
    double typical_us = 0;  // of a pass
    void Add(int n, double pass_us) noexcept;
    void Forget() noexcept { tokens = us = 0; }
    double rate() const { return us > 0 ? tokens / us : 0; }
  };
  struct Match {
    Sum with, without;
    int until_review = 0, interval = 0;  // passes with drafts before the next review
    int comparing = 0;                   // plain passes left in a review
    int suspended = 0, suspension = 0;   // plain passes left; the length of the next suspension
  };
  void Decide(Match& m) noexcept;

  std::vector<Match> matches_;  // [max_sequences + 1], by sequences
};

}  // namespace foretoken::draft_length
