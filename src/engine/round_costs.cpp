// SPDX-License-Identifier: Apache-2.0
#include "engine/round_costs.h"

#include <algorithm>

namespace foretoken::engine {

RoundCosts::RoundCosts(int max_rows, double draft_share)
    : pass_us_(static_cast<std::size_t>(max_rows) + 1), draft_share_(draft_share) {}

// A tenth of the way, and no reading counts for more than twice or less than half of what is known:
// a pass that lost its core for a while says nothing about passes.
double RoundCosts::Moved(double known, double seen) noexcept {
  if (known == 0) return seen;
  return 0.9 * known + 0.1 * std::clamp(seen, known / 2, known * 2);
}

void RoundCosts::SeePass(int rows, double us) noexcept {
  if (rows < 1 || rows >= static_cast<int>(pass_us_.size()) || us <= 0) return;
  double& known = pass_us_[static_cast<std::size_t>(rows)];
  known = Moved(known, us);
  seen_rows_ = std::max(seen_rows_, rows);
}

void RoundCosts::SeeDrafts(int drafts, double us) noexcept {
  if (drafts > 0 && us >= 0) draft_us_ = Moved(draft_us_, us / drafts);
}

void RoundCosts::SeeRest(double us) noexcept {
  if (us >= 0) rest_us_ = Moved(rest_us_, us);
}

double RoundCosts::DraftUs() const noexcept {
  return draft_us_ > 0 ? draft_us_ : draft_share_ * PassUs(1);
}

// A row more than the most that were seen: somewhat dearer than the last ones were; a quarter of a
// pass where only one number of rows was seen.
double RoundCosts::SlopeBeyond(int most) const noexcept {
  constexpr double kDearer = 1.2, kLeast = 0.02, kUnknown = 0.25;
  int before = most - 1;
  while (before > 0 && pass_us_[static_cast<std::size_t>(before)] == 0) --before;
  if (before == 0) return kUnknown * PassUs(most);
  return kDearer * (PassUs(most) - PassUs(before)) / (most - before) + kLeast * PassUs(before);
}

double RoundCosts::PassUs(int rows) const noexcept {
  const auto at = [this](int r) { return pass_us_[static_cast<std::size_t>(r)]; };
  const int last = static_cast<int>(pass_us_.size()) - 1;
  int below = std::min(rows, last), above = std::min(rows + 1, last);
  if (rows <= last && at(rows) > 0) {
    // Noise must not make more rows look cheaper than fewer.
    double us = at(rows);
    for (int r = 1; r < rows; ++r) us = std::max(us, at(r));
    return us;
  }
  while (below > 0 && at(below) == 0) --below;
  while (above <= last && at(above) == 0) ++above;
  if (below == 0 && above > last) return 0;
  if (below == 0) return at(above) * (0.9 + 0.1 * rows / above);
  const double from = PassUs(below);
  if (above > last || at(above) == 0) return from + (rows - below) * SlopeBeyond(below);
  const double to = std::max(from, at(above));
  return from + (to - from) * (rows - below) / (above - below);
}

}  // namespace foretoken::engine
