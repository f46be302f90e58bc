// SPDX-License-Identifier: Apache-2.0
#include "engine/round_costs.h"

#include <algorithm>
#include <bit>

namespace foretoken::engine {

namespace {

constexpr double kFast = 0.08, kSlow = 0.03;  // of a reading, into the level and its own rows

}  // namespace

RoundCosts::RoundCosts(int max_rows, int n_drafters)
    : bands_(kBands, Band(static_cast<std::size_t>(max_rows) + 1)),
      drafters_(static_cast<std::size_t>(n_drafters)) {
  start_.reserve(64);
}

void RoundCosts::Start(std::span<const PassCost> passes) noexcept {
  start_.clear();
  if (passes.empty()) return;
  const auto nearer = [](const PassCost& a, const PassCost& b) { return a.context < b.context; };
  const int least = std::min_element(passes.begin(), passes.end(), nearer)->context;
  for (const PassCost& pass : passes)
    if (pass.context == least && pass.us.median > 0 && start_.size() < start_.capacity())
      start_.push_back({pass.rows, pass.us.median});
  std::sort(start_.begin(), start_.end(), [](Point a, Point b) { return a.rows < b.rows; });
  for (std::size_t i = 1; i < start_.size(); ++i)
    start_[i].us = std::max(start_[i].us, start_[i - 1].us);
  position_us_ = 0;
  for (const PassCost& pass : passes) {
    if (pass.context <= least) continue;
    const double added = pass.us.median - Curve(pass.rows, 0);
    position_us_ = std::max(position_us_, added / pass.rows / (pass.context - least));
  }
}

void RoundCosts::StartDrafter(int drafter, double draft_us, double row_us) noexcept {
  drafters_[static_cast<std::size_t>(drafter)] = {std::max(0.0, draft_us), std::max(0.0, row_us)};
}

// A tenth of the way.
double RoundCosts::Moved(double known, double seen) noexcept {
  if (known == 0) return seen;
  return 0.9 * known + 0.1 * std::clamp(seen, known / 2, known * 2);
}

int RoundCosts::BandOf(int context) noexcept {
  const auto parts = static_cast<unsigned>(std::max(0, context)) / 512;
  return std::min(kBands - 1, static_cast<int>(std::bit_width(parts)));
}

void RoundCosts::SeePass(int rows, int context, double us) noexcept {
  auto& band = bands_[static_cast<std::size_t>(BandOf(context))];
  if (rows < 1 || rows >= static_cast<int>(band.size()) || us <= 0) return;
  Reading& known = band[static_cast<std::size_t>(rows)];
  const double expected = Estimate(band, rows, context);
  if (expected == 0) {
    known = {us / level_, 1};
  } else {
    // No reading counts for more than twice or less than half of what is expected: a pass that lost
    // its core for a while says nothing about passes.
    const double off = std::clamp(us / (expected * level_), 0.5, 2.0) - 1;
    const double weight = std::max(kSlow, 1.0 / (known.n + 2));
    known = {expected * (1 + weight * off), known.n + 1};
    if (known.n > 1) level_ = std::clamp(level_ * (1 + kFast * off), 0.01, 100.0);
  }
  seen_rows_ = std::max(seen_rows_, rows);
}

void RoundCosts::SeeDrafts(int drafter, int drafts, double us) noexcept {
  double& known = drafters_[static_cast<std::size_t>(drafter)].draft_us;
  if (drafts > 0 && us >= 0) known = Moved(known, us / drafts);
}

void RoundCosts::SeeCatchUp(int drafter, int rows, double us) noexcept {
  double& known = drafters_[static_cast<std::size_t>(drafter)].row_us;
  if (rows > 0 && us >= 0) known = Moved(known, us / rows);
}

void RoundCosts::SeeRest(double us) noexcept {
  if (us >= 0) rest_us_ = Moved(rest_us_, us);
}

int RoundCosts::TrustedRows() const noexcept {
  return std::max(start_.size() < 2 ? 0 : start_.back().rows, 2 * seen_rows_);
}

// What was measured at the start; 0: nothing was. Beyond its last point a row is taken for somewhat
// dearer than the last ones were, and for a quarter of a pass where there was one point only.
double RoundCosts::Curve(int rows, int context) const noexcept {
  constexpr double kDearer = 1.2, kLeast = 0.02, kUnknown = 0.25;
  if (start_.empty()) return 0;
  const double far = position_us_ * rows * context;
  const auto right = std::lower_bound(start_.begin(), start_.end(), rows,
                                      [](const Point& p, int r) { return p.rows < r; });
  if (right == start_.begin()) return right->us * (0.9 + 0.1 * rows / right->rows) + far;
  const Point& left = *(right - 1);
  if (right != start_.end())
    return left.us + (right->us - left.us) * (rows - left.rows) / (right->rows - left.rows) + far;
  if (start_.size() == 1) return left.us * (1 + kUnknown * (rows - left.rows)) + far;
  const Point& before = *(right - 2);
  const double slope = kDearer * (left.us - before.us) / (left.rows - before.rows);
  return left.us + (rows - left.rows) * (slope + kLeast * before.us) + far;
}

// Over the level.
double RoundCosts::Estimate(const Band& band, int rows, int context) const noexcept {
  const auto at = [&band](int r) { return band[static_cast<std::size_t>(r)].us; };
  const int last = std::min(static_cast<int>(band.size()) - 1, seen_rows_);
  if (rows <= last && at(rows) > 0) return at(rows);
  int below = std::min(rows, last), above = std::min(rows + 1, last);
  while (below > 0 && at(below) == 0) --below;
  while (above <= last && at(above) == 0) ++above;
  const bool left = below > 0, right = above <= last && at(above) > 0 && above > rows;
  // Readings over the curve where there is one, else over a curve that rises by a quarter a row.
  const bool curved = !start_.empty();
  const auto curve = [&](int r) { return curved ? Curve(r, context) : 1 + 0.25 * (r - 1); };
  if (!left && !right) return curved ? curve(rows) : 0;
  const double from = left ? at(below) / curve(below) : 0,
               to = right ? at(above) / curve(above) : 0;
  if (!left) return curve(rows) * to;
  if (!right) return curve(rows) * from;
  return curve(rows) * (from + (to - from) * (rows - below) / (above - below));
}

double RoundCosts::PassUs(int rows, int context) const noexcept {
  int nearest = BandOf(context);
  if (start_.empty())  // without a curve the nearest band that was read stands for this one
    while (nearest > 0 && Estimate(bands_[static_cast<std::size_t>(nearest)], 1, context) == 0)
      --nearest;
  const auto& band = bands_[static_cast<std::size_t>(nearest)];
  double us = Estimate(band, rows, context);
  // Noise must not make more rows look cheaper than fewer.
  for (int r = 1; r < rows && r <= seen_rows_; ++r)
    us = std::max(us, band[static_cast<std::size_t>(r)].us);
  return us * level_;
}

}  // namespace foretoken::engine
