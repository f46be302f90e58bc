// SPDX-License-Identifier: Apache-2.0
// draft_length/survival.h: how likely a draft is accepted at each position of a round, if those
// before it were; learned from verdicts, where old ones count less.
#pragma once

#include <algorithm>
#include <array>

#include "draft_length/tuning.h"
#include "foretoken/drafts.h"

namespace foretoken::draft_length {

class Survival {
 public:
  // fading: the weight of a verdict when the next one comes. Positions without verdicts fade more
  // slowly, so that a longer draft gets another chance.
  explicit Survival(double fading = tuning::kOwnFading)
      : fading_(fading), ageing_(1 - (1 - fading) / 4) {}

  void Observe(int drafted, int accepted) noexcept {
    // A rejection is the verdict of its position; positions behind it have none.
    const int verified = std::min({drafted, accepted + 1, kMaxDraft});
    for (int i = 0; i < verified; ++i) {
      Position& p = positions_[static_cast<std::size_t>(i)];
      p.verified = fading_ * p.verified + 1;
      p.accepted = fading_ * p.accepted + (i < accepted ? 1 : 0);
    }
    for (int i = verified; i < known_; ++i) {
      Position& p = positions_[static_cast<std::size_t>(i)];
      p.verified *= ageing_, p.accepted *= ageing_;
    }
    known_ = std::max(known_, verified);
  }

  // s[i], i in [0, n): the probability that drafts 0..i are all accepted. Smoothed with a few
  // pseudo-observations of `others` (tuning.h); `others` itself with some that say that position i
  // behaves like position i - 1, and the first like `prior`. weight: what the own verdicts count,
  // in [0, 1]. n <= kMaxDraft.
  void Read(const Survival& others, double prior, double weight, int n, double* s) const noexcept {
    double own = prior, common = prior, product = 1;
    for (int i = 0; i < n; ++i) {
      common = others.Moved(i, common, tuning::kPseudoShared, 1);
      own = Moved(i, i == 0 ? common : std::min(common, (common + own) / 2), tuning::kPseudoOwn,
                  weight);
      s[i] = product *= own;
    }
  }

  struct Position {
    double accepted = 0, verified = 0;
  };
  const Position& At(int position) const noexcept {
    return positions_[static_cast<std::size_t>(position)];
  }
  // As if so many verdicts had been observed of the position.
  void Start(int position, double verified, double accepted) noexcept {
    positions_[static_cast<std::size_t>(position)] = {accepted, verified};
    known_ = std::max(known_, position + 1);
  }

 private:
  double Moved(int i, double prior, double counts, double weight) const noexcept {
    const Position& p = positions_[static_cast<std::size_t>(i)];
    return (weight * p.accepted + counts * prior) / (weight * p.verified + counts);
  }

  double fading_, ageing_;
  int known_ = 0;  // positions that ever had a verdict
  std::array<Position, kMaxDraft> positions_{};
};

}  // namespace foretoken::draft_length
