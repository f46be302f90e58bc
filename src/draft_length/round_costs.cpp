// SPDX-License-Identifier: Apache-2.0
#include "draft_length/round_costs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "draft_length/tuning.h"

namespace foretoken::draft_length {

namespace {

using namespace tuning;

constexpr double kLeastLevel = 0.01, kMostLevel = 100;

}  // namespace

RoundCosts::RoundCosts(int max_rows, int n_drafters, int max_sequences)
    : readings_(static_cast<std::size_t>(max_rows) + 1),
      drafters_(static_cast<std::size_t>(n_drafters)) {
  start_.reserve(64);
  pools_.reserve(static_cast<std::size_t>(max_rows) + 1);
  for (DrafterCosts& d : drafters_) d.draft_us.resize(static_cast<std::size_t>(max_sequences) + 1);
}

void RoundCosts::Start(std::span<const PassCost> passes) noexcept {
  start_.clear();
  of_another_ = false;
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
  context_.Start(Curve(1));
  for (const PassCost& pass : passes)
    if (pass.context > least)
      context_.Measured({.rows = pass.rows, .context = pass.context - least},
                        std::max(0.0, pass.us.median - Curve(pass.rows)),
                        kLeastNoise * pass.us.median);
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
  d.context.Start(std::max(0.0, one_us));
  d.draft_us[1] = std::max(0.0, one_us);
  if (d.draft_us.size() > 2) d.draft_us.back() = std::max(0.0, all_us);
}

void RoundCosts::StartWith(const LearnedCosts& learned) {
  std::vector<PassCost> passes;
  for (const LearnedCosts::Pass& pass : learned.passes)
    passes.push_back({pass.rows, 0, {pass.us, pass.us, pass.us}});
  Start(passes);
  context_.Known(learned.position);
  for (std::size_t d = 0; d < std::min(learned.drafts.size(), drafters_.size()); ++d)
    if (const LearnedCosts::Drafts& drafts = learned.drafts[d]; drafts.one_us > 0)
      StartDrafter(static_cast<int>(d), drafts.one_us, drafts.all_us, drafts.row_us, drafts.first);
  untimed_ = kUntimed;
  of_another_ = true;
}

void RoundCosts::StartDrafterLike(int drafter, int other) noexcept {
  drafters_[static_cast<std::size_t>(drafter)] = At(other);
}

// What a reading counts where readings scatter as they do now, as a share.
double RoundCosts::Calm() const noexcept {
  const double unrest = jitter_ / kCalmJitter;
  return 1 / (1 + unrest * unrest);
}

// Moves a tenth of the way to a reading, less where readings scatter, and half of the way down where the known time was far too
// long: by chance work may take longer than it must, but never less.
double RoundCosts::Moved(double known, double seen) const noexcept {
  if (known == 0) return seen;
  if (seen < known / 2) return (known + seen) / 2;
  const double share = kDraftShare * Calm();
  return (1 - share) * known + share * std::min(seen, known * 2);
}

void RoundCosts::RecordPass(const ContextPass& pass, double us,
                            std::int64_t distinct_experts) noexcept {
  const int rows = pass.rows;
  if (rows < 1 || rows >= static_cast<int>(readings_.size()) || us <= 0) return;
  us = std::max(us / 2, us - level_ * experts_.BeyondUs(rows, distinct_experts));
  experts_.Record(rows, distinct_experts);
  const Reading& known = ReadingOf(rows);
  const double of_rows = Estimate(rows), expected = of_rows + context_.Us(pass);
  ++passes_;
  run_ = rows == last_rows_ ? run_ + 1 : 0;
  last_rows_ = rows;
  if (of_rows == 0) {
    if (start_.empty()) context_.Start(us / level_);
    return Believe(rows, {us / level_, 1});
  }
  if (untimed_ > 0) return SetLevel(us / expected);
  const double off = Off(us, expected, context_.DoubtUs(pass));
  const bool faster = FasterSince(rows, off);
  const bool guessed = known.n == 0 && start_.empty();
  if (!faster && !guessed && doubt_.rows == 0 && !ReadLately(known) &&
      off < -kFarOff - 2 * jitter_) {
    doubt_ = {rows, of_rows * (1 + off), off};
    return;
  }
  if (!BelievedAbove(rows, off, 3 * context_.DoubtUs(pass) / expected)) return;
  const double noise_us = (kLeastNoise + jitter_) * expected,
               rest_off = off - context_.Learn(pass, off * expected, noise_us) / expected;
  if (known.n > 1) MoveLevel(rest_off);
  const double fresh = 1.0 / (known.n + (start_.empty() ? 2 : kStartCounts)),
               weight = std::max(kRowsShare, fresh) * Calm() / (1 + run_ / kLongRun),
               before = known.n > 0 ? known.us : of_rows;
  Believe(rows, {before + weight * (of_rows * (1 + rest_off) - before), known.n + 1});
}

void RoundCosts::Believe(int rows, Reading reading) noexcept {
  reading.pass = passes_;
  ReadingOf(rows) = reading;
  seen_rows_ = std::max(seen_rows_, rows);
  Raise();
}

// Ends a doubt with the first pass of other rows, which is `off` from what was expected: true if that
// was quick, too, because then the machine has become faster. Otherwise the doubtful reading is right.
bool RoundCosts::FasterSince(int rows, double off) noexcept {
  if (doubt_.rows == 0 || doubt_.rows == rows) return false;
  const Doubt doubt = std::exchange(doubt_, {});
  const bool faster = off < doubt.off / 2;
  if (faster)
    MoveLevel(doubt.off);
  else
    Believe(doubt.rows, {doubt.us, ReadingOf(doubt.rows).n + 1});
  return faster;
}

// Whether a reading counts. off: its share above what was expected; doubt: the share by which that may be
// wrong. A reading far above what a few readings agree on is a pause. It counts only if the pass before, or
// the last pass of as many rows, was far above, too.
bool RoundCosts::BelievedAbove(int rows, double off, double doubt) noexcept {
  const bool above = off > kFarOff + 2 * jitter_ + doubt,
             again = std::exchange(ReadingOf(rows).above, above) || n_aside_ > 0;
  if (!above || again || ReadingOf(rows).n < kTellsPauses) return true;
  n_aside_ = 1;
  jitter_ += kLevelShare * (off - jitter_);
  return false;
}

bool RoundCosts::ReadLately(const Reading& reading) const noexcept {
  return reading.n > 1 && passes_ - reading.pass <= kLately;
}

// A reading counts as at most twice and at least half of what is expected, because a pass that lost
// its core for a while says nothing about passes. What the context may cost is in doubt beyond that.
double RoundCosts::Off(double us, double expected, double doubt) const noexcept {
  return std::clamp(us / level_, expected / 2, 2 * (expected + doubt)) / expected - 1;
}

// By the quickest of the passes that tell it: work may take longer than it must, but never less.
void RoundCosts::SetLevel(double level) noexcept {
  level = std::clamp(level, kLeastLevel, kMostLevel);
  level_ = untimed_ == kUntimed ? level : std::min(level_, level);
  --untimed_;
}

// Consecutive readings that lie far off on the same side are unlikely to be chance.
void RoundCosts::MoveLevel(double off) noexcept {
  const int side = off > kFarOff ? 1 : off < -kFarOff ? -1 : 0;
  n_aside_ = side == 0 ? 0 : side * n_aside_ > 0 ? n_aside_ + side : side;
  const double weight = std::min(0.6, kLevelShare * std::max(1, std::abs(n_aside_)));
  level_ = std::clamp(level_ * (1 + weight * off), kLeastLevel, kMostLevel);
  jitter_ += kLevelShare * (std::abs(off) - jitter_);
}

// What was read of these rows, together with what their nearest neighbours were read to take over the
// curve: as many more readings as the neighbours have, at most kNeighbours.
double RoundCosts::WithNeighbours(int rows) const noexcept {
  const auto at = [this](int r) -> const Reading& { return ReadingOf(r); };
  const Reading& own = at(rows);
  int below = rows - 1, above = rows + 1;
  while (below > 0 && at(below).n == 0) --below;
  while (above <= seen_rows_ && at(above).n == 0) ++above;
  if (start_.empty() || below < 1 || above > seen_rows_) return own.us;
  const int more = std::min({at(below).n - own.n, at(above).n - own.n, kNeighbours});
  if (more <= 0) return own.us;
  const double left = at(below).us / Curve(below), right = at(above).us / Curve(above),
               share = static_cast<double>(rows - below) / (above - below);
  return (own.n * own.us + more * Curve(rows) * (left + (right - left) * share)) / (own.n + more);
}

void RoundCosts::Raise() noexcept {
  pools_.clear();
  for (int rows = 1; rows <= seen_rows_; ++rows) {
    const Reading& reading = ReadingOf(rows);
    if (reading.n == 0) continue;
    Pool pool{WithNeighbours(rows), static_cast<double>(reading.n), rows};
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
      Reading& reading = ReadingOf(rows);
      reading.monotone = reading.n == 0 ? 0 : pool.us;
    }
}

// How many sequences take part in a step of a round's drafts on average. The last steps have fewer.
int RoundCosts::Together(int drafts, int longest) noexcept {
  return std::max(1, (drafts + longest / 2) / longest);
}

void RoundCosts::RecordDrafts(int drafter, int drafts, int longest, double us,
                              int context) noexcept {
  if (longest < 1 || us < 0 || untimed_ > 0) return;
  DrafterCosts& costs = drafters_[static_cast<std::size_t>(drafter)];
  auto& known = costs.draft_us;
  const int together = std::min(Together(drafts, longest), static_cast<int>(known.size()) - 1);
  const ContextPass pass = {together, together, context};
  const double further = FurtherUs(drafter, together), expected = further + costs.context.Us(pass);
  double seen = us / level_ / costs.Drafts(longest);
  if (further > 0) {
    const double more = std::min(seen, 2 * (expected + costs.context.DoubtUs(pass))) - expected,
                 rest = more - costs.context.Learn(pass, more, kCalmJitter * expected);
    seen = further * (1 + rest / expected);
  } else {
    costs.context.Start(seen);
  }
  double& reading = known[static_cast<std::size_t>(together)];
  reading = costs.n_read < kFewReadings && seen < further ? seen : Moved(further, seen);
  costs.n_read = std::min(costs.n_read + 1, kFewReadings);
}

double RoundCosts::DraftsUs(int drafter, int drafts, int longest, int context) const noexcept {
  if (longest < 1) return 0;
  return level_ * At(drafter).Drafts(longest) *
         FurtherUs(drafter, Together(drafts, longest), context);
}

double RoundCosts::LeastDraftsUs(int drafter, int drafts, int longest, int context) const noexcept {
  if (longest < 1) return 0;
  const DrafterCosts& costs = At(drafter);
  const int together = Together(drafts, longest);
  const double share = costs.n_read < kFewReadings ? kHopedDraft : 1,
               us = FurtherUs(drafter, together, context),
               doubt = costs.context.DoubtUs({together, together, context});
  return level_ * costs.Drafts(longest) * share * std::max(us / 2, us - doubt);
}

double RoundCosts::DraftUs(int drafter, int sequences, int before, int context) const noexcept {
  return level_ * At(drafter).ShareOf(before) * FurtherUs(drafter, sequences, context);
}

double RoundCosts::FurtherUs(int drafter, int sequences, int context) const noexcept {
  if (sequences < 1) return 0;
  return FurtherUs(drafter, sequences) + At(drafter).context.Us({sequences, sequences, context});
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
  if (rows > 0 && us >= 0 && untimed_ == 0) known = Moved(known, us / level_ / rows);
}

void RoundCosts::RecordRest(double us) noexcept {
  if (us >= 0) rest_us_ = Moved(rest_us_, us);
}

std::vector<int> RoundCosts::KnownRows() const {
  std::vector<int> known;
  for (const Point& point : start_) known.push_back(point.rows);
  for (int rows = 1; rows <= seen_rows_; ++rows)
    if (ReadingOf(rows).n > 0) known.push_back(rows);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known;
}

LearnedCosts RoundCosts::Learned() const {
  LearnedCosts learned;
  for (const int rows : KnownRows()) learned.passes.push_back({rows, level_ * Estimate(rows)});
  for (const DrafterCosts& d : drafters_)
    learned.drafts.push_back({.one_us = level_ * d.draft_us[1],
                              .all_us = d.draft_us.size() > 2 ? level_ * d.draft_us.back() : 0,
                              .row_us = level_ * d.row_us,
                              .first = d.first});
  learned.of_another = of_another_;
  learned.position = {level_ * context_.prices().bytes, level_ * context_.prices().arithmetic};
  return learned;
}

int RoundCosts::TrustedRows() const noexcept {
  return std::max(start_.size() < 2 ? 0 : start_.back().rows, 2 * seen_rows_);
}

// The curve that was measured at the start, and 0 where nothing was. Beyond its last point a row is
// assumed to cost somewhat more than the last rows, and a quarter of a pass if there is only one
// point.
double RoundCosts::Curve(int rows) const noexcept {
  if (start_.empty()) return 0;
  const auto right = std::lower_bound(start_.begin(), start_.end(), rows,
                                      [](const Point& p, int r) { return p.rows < r; });
  if (right == start_.begin()) return right->us * (0.9 + 0.1 * rows / right->rows);
  const Point& left = *(right - 1);
  if (right != start_.end())
    return left.us + (right->us - left.us) * (rows - left.rows) / (right->rows - left.rows);
  if (start_.size() == 1) return left.us * (1 + kUnknownRow * (rows - left.rows));
  const Point& before = *(right - 2);
  const double slope = kDearerRows * (left.us - before.us) / (left.rows - before.rows);
  return left.us + (rows - left.rows) * (slope + kLeastRow * before.us);
}

// The estimate relative to the level.
double RoundCosts::Estimate(int rows) const noexcept {
  const auto at = [this](int r) { return ReadingOf(r).monotone; };
  const int last = std::min(static_cast<int>(readings_.size()) - 1, seen_rows_);
  if (rows <= last && at(rows) > 0) return at(rows);
  int below = std::min(rows, last), above = std::min(rows + 1, last);
  while (below > 0 && at(below) == 0) --below;
  while (above <= last && at(above) == 0) ++above;
  const bool left = below > 0, right = above <= last && at(above) > 0 && above > rows;
  // Readings are taken relative to the curve. Where none was measured, they are relative to one
  // that rises by kUnknownRow for each row.
  const bool curved = !start_.empty();
  const auto curve = [&](int r) { return curved ? Curve(r) : 1 + kUnknownRow * (r - 1); };
  if (!left && !right) return curved ? curve(rows) : 0;
  const double from = left ? at(below) / curve(below) : 0,
               to = right ? at(above) / curve(above) : 0;
  if (!left) return curve(rows) * to;
  if (!right) return curve(rows) * from;
  const double share = static_cast<double>(rows - below) / (above - below);
  return std::clamp(curve(rows) * (from + (to - from) * share), at(below), at(above));
}

double RoundCosts::PassUs(const ContextPass& pass) const noexcept {
  const double independent = Estimate(pass.rows), beyond = experts_.ExpectedBeyondUs(pass.rows),
               // More rows never cost less than one.
      of_rows = beyond == 0 ? independent
                            : std::max(independent + beyond, std::min(independent, Estimate(1)));
  return level_ * (of_rows + context_.Us(pass));
}

double RoundCosts::LeastPassUs(int rows, int context) const noexcept {
  const ContextPass pass = {.rows = rows, .context = context};
  const double us = PassUs(pass), least = std::max(us / 2, us - level_ * context_.DoubtUs(pass));
  for (int read = std::min({rows, seen_rows_, static_cast<int>(readings_.size()) - 1}); read > 0;
       --read)
    if (ReadLately(ReadingOf(read)))
      return std::min(least, PassUs(read, context) * (1 + kLeastRow * (rows - read)));
  return least;
}

}  // namespace foretoken::draft_length
