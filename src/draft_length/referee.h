// SPDX-License-Identifier: Apache-2.0
// draft_length/referee.h: whether drafts pay, by what passes gave: tokens over time with drafts against
// without, apart for each number of sequences that decode together.
//
// The cost model predicts, and what it does not see (a machine that others load, drafts that wake
// threads, costs that were measured in a bad moment) makes its predictions wrong for long. So after
// some passes with drafts a few are made plainly; where these gave more, drafting is suspended, for
// longer each time that a trial confirms it. Where drafts pay, plain passes become rare.
#pragma once

#include <vector>

namespace foretoken::draft_length {

class Referee {
 public:
  explicit Referee(int max_sequences);

  enum class Word {
    kDraft,      // as is planned
    kCompare,    // plainly: for the comparison
    kSuspended,  // plainly: drafts have lost
  };
  // Of the next pass, with n sequences.
  Word Next(int n) const noexcept;
  // A pass of n sequences that read no prompt and measured nothing else: its tokens and time.
  void See(int n, bool drafted, int tokens, double us) noexcept;

 private:
  struct Sum {
    double tokens = 0, us = 0;
    double typical_us = 0;  // of a pass
    void Add(int n, double pass_us) noexcept;
    void Fade(double share) noexcept { tokens *= share, us *= share; }
    double rate() const { return us > 0 ? tokens / us : 0; }
  };
  struct Match {
    Sum with, without;
    int until_review = 0, interval = 0;  // passes with drafts
    int comparing = 0;                   // plain passes that are left of a review
    int suspended = 0, suspension = 0;   // plain passes that are left; of the next time
  };
  void Judge(Match& m) noexcept;

  std::vector<Match> matches_;  // [max_sequences + 1], by sequences
};

}  // namespace foretoken::draft_length
