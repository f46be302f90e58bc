// SPDX-License-Identifier: Apache-2.0
// engine/survival.h: how likely a draft is accepted at each position of a round, given that those
// before it were; learned from verdicts, old ones fading.
#pragma once

#include <algorithm>
#include <array>

namespace foretoken::engine {

class Survival {
 public:
  static constexpr int kPositions = 64;

  // Positions without verdicts are taken for like the one before them, the first for `prior`.
  void Observe(int drafted, int accepted) noexcept {
    // A rejection is the verdict of the position it happened at; those behind it have none.
    const int judged = std::min({drafted, accepted + 1, kPositions});
    for (int i = 0; i < judged; ++i) {
      Position& p = positions_[static_cast<std::size_t>(i)];
      p.judged = kFading * p.judged + 1;
      p.accepted = kFading * p.accepted + (i < accepted ? 1 : 0);
    }
  }

  // s[i], i in [0, n): probability that drafts 0..i are all accepted. n <= kPositions.
  void Read(double prior, int n, double* s) const noexcept {
    double conditional = prior, product = 1;
    for (int i = 0; i < n; ++i) {
      const Position& p = positions_[static_cast<std::size_t>(i)];
      conditional = (p.accepted + kPriorWeight * conditional) / (p.judged + kPriorWeight);
      s[i] = product *= conditional;
    }
  }
  // Of the first position.
  double First(double prior) const noexcept {
    double first = 0;
    Read(prior, 1, &first);
    return first;
  }

 private:
  static constexpr double kFading = 0.95, kPriorWeight = 2;
  struct Position {
    double accepted = 0, judged = 0;
  };
  std::array<Position, kPositions> positions_{};
};

}  // namespace foretoken::engine
