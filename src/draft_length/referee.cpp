// SPDX-License-Identifier: Apache-2.0
#include "draft_length/referee.h"

#include <algorithm>

namespace foretoken::draft_length {
namespace {

// Passes. One sequence alone gains the most and has the fewest passes.
constexpr int kFirstAlone = 256, kFirstTogether = 64, kLongestInterval = 8192;
constexpr int kComparison = 8, kTrial = 32;
constexpr int kFirstSuspension = 256, kLongestSuspension = 16384;
constexpr double kFading = 0.25;  // what is left of earlier passes at a review

}  // namespace

// A pass that lost its core for a while says nothing about drafts: it counts as twice a usual one.
void Referee::Sum::Add(int n, double pass_us) noexcept {
  const double counted = typical_us > 0 ? std::min(pass_us, 2 * typical_us) : pass_us;
  typical_us += (typical_us > 0 ? 0.1 : 1) * (counted - typical_us);
  tokens += n;
  us += counted;
}

Referee::Referee(int max_sequences) : matches_(static_cast<std::size_t>(max_sequences) + 1) {
  for (std::size_t n = 0; n < matches_.size(); ++n) {
    matches_[n].interval = matches_[n].until_review = n < 2 ? kFirstAlone : kFirstTogether;
    matches_[n].suspension = kFirstSuspension;
  }
}

Referee::Decision Referee::Next(int n) const noexcept {
  const Match& m = matches_[static_cast<std::size_t>(n)];
  return m.suspended > 0   ? Decision::kSuspended
         : m.comparing > 0 ? Decision::kCompare
                           : Decision::kDraft;
}

void Referee::Record(int n, bool drafted, int tokens, double us) noexcept {
  Match& m = matches_[static_cast<std::size_t>(n)];
  (drafted ? m.with : m.without).Add(tokens, us);
  if (!drafted && m.suspended > 0) {
    if (--m.suspended > 0) return;
    m.with.Fade(0);
    m.until_review = kTrial;
  } else if (!drafted && m.comparing > 0) {
    if (--m.comparing == 0) Judge(m);
  } else if (drafted && --m.until_review <= 0) {
    m.without.Fade(kFading);
    m.comparing = kComparison;
  }
}

void Referee::Judge(Match& m) noexcept {
  if (m.with.rate() < m.without.rate()) {
    m.suspended = m.suspension;
    m.suspension = std::min(kLongestSuspension, 2 * m.suspension);
  } else {
    m.interval = std::min(kLongestInterval, 2 * m.interval);
    m.suspension = kFirstSuspension;
  }
  m.until_review = m.interval;
  m.with.Fade(kFading);
}

}  // namespace foretoken::draft_length
