// SPDX-License-Identifier: Apache-2.0
#include "draft_length/round_costs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "draft_length/tuning.h"

namespace foretoken::draft_length {

namespace {

using namespace tuning;

}  // namespace

RoundCosts::RoundCosts(int max_rows, int n_drafters, int max_sequences)
    : bands_(kBands, Band(static_cast<std::size_t>(max_rows) + 1)),
      drafters_(static_cast<std::size_t>(n_drafters)) {
  start_.reserve(64);
  pools_.reserve(static_cast<std::size_t>(max_rows) + 1);
  for (DrafterCosts& d : drafters_) d.draft_us.resize(static_cast<std::size_t>(max_sequences) + 1);
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
  // A lone row has kernels of its own and may truly cost more than two.
  for (std::size_t i = start_.size(); i-- > 1;)
    if (start_[i - 1].rows > 1) start_[i - 1].us = std::min(start_[i - 1].us, start_[i].us);
  position_us_ = 0;
  for (const PassCost& pass : passes) {
    if (pass.context <= least) continue;
    const double added = pass.us.median - Curve(pass.rows, 0);
    position_us_ = std::max(position_us_, added / pass.rows / (pass.context - least));
  }
}

void RoundCosts::StartExperts(const ExpertShape& shape, double us_per_expert,
                              std::span<const PassCost> passes) noexcept {
  experts_ = ExpertCosts(shape, us_per_expert);
  experts_.Expect(passes);
}

void RoundCosts::DraftsAtOnce(int drafter) noexcept {
  drafters_[static_cast<std::size_t>(drafter)].at_once = true;
}

void RoundCosts::StartDrafter(int drafter, double one_us, double all_us, double row_us,
                              double first) noexcept {
  DrafterCosts& d = drafters_[static_cast<std::size_t>(drafter)];
  d.first = std::max(1.0, first);
  d.row_us = std::max(0.0, row_us);
  d.draft_us[1] = std::max(0.0, one_us);
  if (d.draft_us.size() > 2) d.draft_us.back() = std::max(0.0, all_us);
}

// Moves a tenth of the way to a reading, and half of the way down where the known time was far too
// long: by chance work may take longer than it must, but never less.
double RoundCosts::Moved(double known, double seen) noexcept {
  if (known == 0) return seen;
  if (seen < known / 2) return (known + seen) / 2;
  return (1 - kDraftShare) * known + kDraftShare * std::min(seen, known * 2);
}

int RoundCosts::BandOf(int context) noexcept {
  const auto parts = static_cast<unsigned>(std::max(0, context)) / 512;
  return std::min(kBands - 1, static_cast<int>(std::bit_width(parts)));
}

void RoundCosts::RecordPass(int rows, int context, double us,
                            std::int64_t distinct_experts) noexcept {
  auto& band = bands_[static_cast<std::size_t>(BandOf(context))];
  if (rows < 1 || rows >= static_cast<int>(band.size()) || us <= 0) return;
  us = std::max(us / 2, us - level_ * experts_.BeyondUs(rows, distinct_experts));
  experts_.Record(rows, distinct_experts);
  const Reading& known = band[static_cast<std::size_t>(rows)];
  const double expected = Estimate(band, rows, context);
  ++passes_;
  run_ = rows == last_rows_ ? run_ + 1 : 0;
  last_rows_ = rows;
  if (expected == 0) return Believe(band, rows, {us / level_, 1});
  const double off = Off(us, expected);
  const bool faster = FasterSince(band, rows, off);
  const bool guessed = known.n == 0 && start_.empty();
  if (!faster && !guessed && doubt_.band == nullptr && !ReadLately(known) &&
      off < -kFarOff - 2 * jitter_) {
    doubt_ = {&band, rows, expected * (1 + off), off};
    return;
  }
  if (known.n > 1) MoveLevel(off);
  const double rest = jitter_ / kCalmJitter,
               fresh = 1.0 / (known.n + (start_.empty() ? 2 : kStartCounts)),
               weight = std::max(kRowsShare, fresh) / (1 + rest * rest) / (1 + run_ / kLongRun),
               before = known.n > 0 ? known.us : expected;
  Believe(band, rows, {before + weight * (expected * (1 + off) - before), known.n + 1});
}

void RoundCosts::Believe(Band& band, int rows, Reading reading) noexcept {
  reading.pass = passes_;
  band[static_cast<std::size_t>(rows)] = reading;
  seen_rows_ = std::max(seen_rows_, rows);
  Raise(band);
}

// Ends a doubt with the first pass of other rows, which is `off` from what was expected: true if that
// was quick, too, because then the machine has become faster. Otherwise the doubtful reading is right.
bool RoundCosts::FasterSince(const Band& band, int rows, double off) noexcept {
  if (doubt_.band == nullptr || (doubt_.band == &band && doubt_.rows == rows)) return false;
  const Doubt doubt = std::exchange(doubt_, {});
  const bool faster = off < doubt.off / 2;
  if (faster) {
    MoveLevel(doubt.off);
  } else {
    const Reading& known = (*doubt.band)[static_cast<std::size_t>(doubt.rows)];
    Believe(*doubt.band, doubt.rows, {doubt.us, known.n + 1});
  }
  return faster;
}

bool RoundCosts::ReadLately(const Reading& reading) const noexcept {
  return reading.n > 1 && passes_ - reading.pass <= kLately;
}

// A reading counts as at most twice and at least half of what is expected, because a pass that lost
// its core for a while says nothing about passes.
double RoundCosts::Off(double us, double expected) const noexcept {
  return std::clamp(us / (expected * level_), 0.5, 2.0) - 1;
}

// Consecutive readings that lie far off on the same side are unlikely to be chance.
void RoundCosts::MoveLevel(double off) noexcept {
  const int side = off > kFarOff ? 1 : off < -kFarOff ? -1 : 0;
  n_aside_ = side == 0 ? 0 : side * n_aside_ > 0 ? n_aside_ + side : side;
  const double weight = std::min(0.6, kLevelShare * std::max(1, std::abs(n_aside_)));
  level_ = std::clamp(level_ * (1 + weight * off), 0.01, 100.0);
  jitter_ += kLevelShare * (std::abs(off) - jitter_);
}

// What was read of these rows, together with what their nearest neighbours were read to take over the
// curve: as many more readings as the neighbours have, at most kNeighbours.
double RoundCosts::WithNeighbours(const Band& band, int rows) const noexcept {
  const auto at = [&band](int r) -> const Reading& { return band[static_cast<std::size_t>(r)]; };
  const Reading& own = at(rows);
  int below = rows - 1, above = rows + 1;
  while (below > 0 && at(below).n == 0) --below;
  while (above <= seen_rows_ && at(above).n == 0) ++above;
  if (start_.empty() || below < 1 || above > seen_rows_) return own.us;
  const int more = std::min({at(below).n - own.n, at(above).n - own.n, kNeighbours});
  if (more <= 0) return own.us;
  const double left = at(below).us / Curve(below, 0), right = at(above).us / Curve(above, 0),
               share = static_cast<double>(rows - below) / (above - below);
  return (own.n * own.us + more * Curve(rows, 0) * (left + (right - left) * share)) /
         (own.n + more);
}

void RoundCosts::Raise(Band& band) noexcept {
  pools_.clear();
  for (int rows = 1; rows <= seen_rows_; ++rows) {
    const Reading& reading = band[static_cast<std::size_t>(rows)];
    if (reading.n == 0) continue;
    Pool pool{WithNeighbours(band, rows), static_cast<double>(reading.n), rows};
    for (; !pools_.empty() && pools_.back().us > pool.us; pools_.pop_back()) {
      const Pool& other = pools_.back();
      const double weight = pool.weight + other.weight;
      pool.us = (pool.weight * pool.us + other.weight * other.us) / weight;
      pool.weight = weight;
    }
    pools_.push_back(pool);
  }
  int rows = 1;
  for (const Pool& pool : pools_)
    for (; rows <= pool.last; ++rows) {
      Reading& reading = band[static_cast<std::size_t>(rows)];
      reading.monotone = reading.n == 0 ? 0 : pool.us;
    }
}

// How many sequences take part in a step of a round's drafts on average. The last steps have fewer.
int RoundCosts::Together(int drafts, int longest) noexcept {
  return std::max(1, (drafts + longest / 2) / longest);
}

void RoundCosts::RecordDrafts(int drafter, int drafts, int longest, double us) noexcept {
  if (longest < 1 || us < 0) return;
  DrafterCosts& costs = drafters_[static_cast<std::size_t>(drafter)];
  auto& known = costs.draft_us;
  const auto together =
      std::min(static_cast<std::size_t>(Together(drafts, longest)), known.size() - 1);
  const double expected = FurtherUs(drafter, static_cast<int>(together)),
               seen = us / level_ / costs.Drafts(longest);
  known[together] = costs.n_read < kFewReadings && seen < expected ? seen : Moved(expected, seen);
  costs.n_read = std::min(costs.n_read + 1, kFewReadings);
}

double RoundCosts::DraftsUs(int drafter, int drafts, int longest) const noexcept {
  if (longest < 1) return 0;
  return level_ * At(drafter).Drafts(longest) * FurtherUs(drafter, Together(drafts, longest));
}

double RoundCosts::LeastDraftsUs(int drafter, int drafts, int longest) const noexcept {
  const double share = At(drafter).n_read < kFewReadings ? kHopedDraft : 1;
  return share * DraftsUs(drafter, drafts, longest);
}

double RoundCosts::DraftUs(int drafter, int sequences, int before) const noexcept {
  return level_ * At(drafter).ShareOf(before) * FurtherUs(drafter, sequences);
}

// Interpolates linearly between two readings. Beyond the last one another sequence costs at most
// what each cost until there.
double RoundCosts::FurtherUs(int drafter, int sequences) const noexcept {
  const auto& known = At(drafter).draft_us;
  const auto at = [&known](int n) { return known[static_cast<std::size_t>(n)]; };
  const int last = static_cast<int>(known.size()) - 1, n = std::min(sequences, last);
  if (n <= 0) return 0;
  int below = n, above = n + 1;
  while (below > 0 && at(below) == 0) --below;
  while (above <= last && at(above) == 0) ++above;
  if (below == n || (above > last && below > 0)) return at(below) * n / below;
  if (above > last) return 0;
  if (below == 0) return at(above);
  return at(below) + (at(above) - at(below)) * (n - below) / (above - below);
}

void RoundCosts::RecordCatchUp(int drafter, int rows, double us) noexcept {
  double& known = drafters_[static_cast<std::size_t>(drafter)].row_us;
  if (rows > 0 && us >= 0) known = Moved(known, us / level_ / rows);
}

void RoundCosts::RecordRest(double us) noexcept {
  if (us >= 0) rest_us_ = Moved(rest_us_, us);
}

std::vector<int> RoundCosts::KnownRows() const {
  std::vector<int> known;
  for (const Point& point : start_) known.push_back(point.rows);
  for (const Band& band : bands_)
    for (int rows = 1; rows <= seen_rows_; ++rows)
      if (band[static_cast<std::size_t>(rows)].n > 0) known.push_back(rows);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known;
}

LearnedCosts RoundCosts::Learned() const {
  LearnedCosts learned;
  for (const int rows : KnownRows())
    learned.passes.push_back({rows, level_ * Estimate(bands_.front(), rows, 0)});
  for (const DrafterCosts& d : drafters_)
    learned.drafts.push_back({.one_us = level_ * d.draft_us[1],
                              .all_us = d.draft_us.size() > 2 ? level_ * d.draft_us.back() : 0,
                              .row_us = level_ * d.row_us,
                              .first = d.first});
  return learned;
}

int RoundCosts::TrustedRows() const noexcept {
  return std::max(start_.size() < 2 ? 0 : start_.back().rows, 2 * seen_rows_);
}

// The curve that was measured at the start, and 0 where nothing was. Beyond its last point a row is
// assumed to cost somewhat more than the last rows, and a quarter of a pass if there is only one
// point.
double RoundCosts::Curve(int rows, int context) const noexcept {
  if (start_.empty()) return 0;
  const double far = position_us_ * rows * context;
  const auto right = std::lower_bound(start_.begin(), start_.end(), rows,
                                      [](const Point& p, int r) { return p.rows < r; });
  if (right == start_.begin()) return right->us * (0.9 + 0.1 * rows / right->rows) + far;
  const Point& left = *(right - 1);
  if (right != start_.end())
    return left.us + (right->us - left.us) * (rows - left.rows) / (right->rows - left.rows) + far;
  if (start_.size() == 1) return left.us * (1 + kUnknownRow * (rows - left.rows)) + far;
  const Point& before = *(right - 2);
  const double slope = kDearerRows * (left.us - before.us) / (left.rows - before.rows);
  return left.us + (rows - left.rows) * (slope + kLeastRow * before.us) + far;
}

// The estimate relative to the level.
double RoundCosts::Estimate(const Band& band, int rows, int context) const noexcept {
  const auto at = [&band](int r) { return band[static_cast<std::size_t>(r)].monotone; };
  const int last = std::min(static_cast<int>(band.size()) - 1, seen_rows_);
  if (rows <= last && at(rows) > 0) return at(rows);
  int below = std::min(rows, last), above = std::min(rows + 1, last);
  while (below > 0 && at(below) == 0) --below;
  while (above <= last && at(above) == 0) ++above;
  const bool left = below > 0, right = above <= last && at(above) > 0 && above > rows;
  // Readings are taken relative to the curve. Where none was measured, they are relative to one
  // that rises by kUnknownRow for each row.
  const bool curved = !start_.empty();
  const auto curve = [&](int r) { return curved ? Curve(r, context) : 1 + kUnknownRow * (r - 1); };
  if (!left && !right) return curved ? curve(rows) : 0;
  const double from = left ? at(below) / curve(below) : 0,
               to = right ? at(above) / curve(above) : 0;
  if (!left) return curve(rows) * to;
  if (!right) return curve(rows) * from;
  const double share = static_cast<double>(rows - below) / (above - below);
  return std::clamp(curve(rows) * (from + (to - from) * share), at(below), at(above));
}

double RoundCosts::PassUs(int rows, int context) const noexcept {
  int nearest = BandOf(context);
  if (start_.empty())  // without a curve the nearest band with readings is used
    while (nearest > 0 && Estimate(bands_[static_cast<std::size_t>(nearest)], 1, context) == 0)
      --nearest;
  const auto& band = bands_[static_cast<std::size_t>(nearest)];
  const double independent = Estimate(band, rows, context);
  const double beyond = experts_.ExpectedBeyondUs(rows);
  if (beyond == 0) return independent * level_;
  // More rows never cost less than one.
  return level_ * std::max(independent + beyond, std::min(independent, Estimate(band, 1, context)));
}

double RoundCosts::LeastPassUs(int rows, int context) const noexcept {
  const double us = PassUs(rows, context);
  const auto& band = bands_[static_cast<std::size_t>(BandOf(context))];
  for (int read = std::min({rows, seen_rows_, static_cast<int>(band.size()) - 1}); read > 0; --read)
    if (ReadLately(band[static_cast<std::size_t>(read)]))
      return std::min(us, PassUs(read, context) * (1 + kLeastRow * (rows - read)));
  return us;
}

}  // namespace foretoken::draft_length
