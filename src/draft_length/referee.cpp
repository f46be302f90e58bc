// SPDX-License-Identifier: Apache-2.0
#include "draft_length/referee.h"

#include <algorithm>

#include "draft_length/tuning.h"

namespace foretoken::draft_length {
namespace {

using namespace tuning;

}  // namespace

// A pass that lost its core for a while says nothing about drafts, so its time counts as at most
// twice the usual time.
void Referee::Sum::Add(int n, double pass_us) noexcept {
  const double counted = typical_us > 0 ? std::min(pass_us, 2 * typical_us) : pass_us;
  typical_us += (typical_us > 0 ? 0.1 : 1) * (counted - typical_us);
  tokens += n;
  us += counted;
}

Referee::Referee(int max_sequences) : matches_(static_cast<std::size_t>(max_sequences) + 1) {
  for (std::size_t n = 0; n < matches_.size(); ++n) {
    matches_[n].interval = matches_[n].until_review =
        n < 2 ? kFirstReviewAlone : kFirstReviewTogether;
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
    m.with.Forget();
    m.until_review = kTrial;
  } else if (!drafted && m.comparing > 0) {
    if (--m.comparing == 0) Decide(m);
  } else if (drafted && --m.until_review <= 0) {
    m.without.Forget();
    m.comparing = kComparison;
  }
}

void Referee::Decide(Match& m) noexcept {
  if (m.with.rate() < m.without.rate()) {
    m.suspended = m.suspension;
    m.suspension = std::min(kLongestWait, 2 * m.suspension);
  } else {
    m.interval = std::min(kLongestWait, 2 * m.interval);
    m.suspension = kFirstSuspension;
  }
  m.until_review = m.interval;
  m.with.Forget();
}

}  // namespace foretoken::draft_length
