// SPDX-License-Identifier: Apache-2.0
#include "calibrate/start_measurer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "draft_length/expert_costs.h"

namespace foretoken::calibrate {
namespace {

constexpr double kBudgetUs = 350'000;       // of all passes,
constexpr double kBudgetPasses = 6;         // or so many of one row, where those take longer
constexpr double kDraftBudgetUs = 100'000;  // of each drafter
constexpr int kRepeats = 4, kDrafts = 3;
constexpr int kMostRepeats = 24;        // of passes, while all together take less than kSoonUs,
constexpr double kSoonUs = 40'000;      // because one moment says little on a shared machine
constexpr double kSoonDraftUs = 4'000;  // the same of a drafter's rounds
constexpr int kMostDraftRepeats = 48;   // of one sequence
// A reading stands between two passes of one row where these are shorter. Longer ones would take what
// there is time for, and a long pass has the mean speed.
constexpr double kShortUs = 5'000;
constexpr double kEqual = Reading::kEqual;  // costs that do not contradict each other,
constexpr double kOnLine = 1.2;             // nor a line between their neighbours, either way,
constexpr double kBeyond = 1.5;             // or one beyond the last two
constexpr int kKinds = 3;         // of a drafter's rounds: several drafts, one, all sequences
constexpr double kMostFirst = 8;  // further drafts that a first one counts for, at most
constexpr int kPrompt = 24, kPrompts = 64;  // tokens: of one sequence; of several together
constexpr int kFarContext = 2048;

bool IsOneRow(const PassCost& cost) {
  return cost.rows == 1 && cost.context == 0;
}

// Whether the others say that this is not what the pass takes: a wider one took less, or a narrower one
// more, or it lies far from the line between its neighbours, or above the one beyond them.
bool Contradicted(const PassCost& cost, const std::vector<PassReading>& readings) {
  const PassCost *left = nullptr, *before = nullptr, *right = nullptr;
  for (const PassReading& reading : readings) {
    const PassCost& other = reading.cost;
    if (other.context != cost.context || other.us.median <= 0) continue;
    if (other.rows > cost.rows) {
      if (cost.us.median > kEqual * other.us.median) return true;
      if (right == nullptr || other.rows < right->rows) right = &other;
    } else if (other.rows < cost.rows) {
      if (other.rows > 1 && other.us.median > kEqual * cost.us.median) return true;
      if (left == nullptr || other.rows > left->rows) {
        before = std::exchange(left, &other);
      } else if (before == nullptr || other.rows > before->rows) {
        before = &other;
      }
    }
  }
  if (left == nullptr || (right == nullptr && before == nullptr)) return false;
  const PassCost& other = right != nullptr ? *right : *before;
  const double slope = (other.us.median - left->us.median) / (other.rows - left->rows),
               line = left->us.median + slope * (cost.rows - left->rows);
  if (right == nullptr) return cost.us.median > kBeyond * line;
  return cost.us.median > kOnLine * line || line > kOnLine * cost.us.median;
}

void TellMedians(std::vector<PassReading>& readings, double row_us) {
  for (PassReading& reading : readings)
    reading.cost.us.median = IsOneRow(reading.cost) ? row_us : reading.reading.Us(row_us);
}

// How many further drafts the first one costs, by a round with it alone and one with several.
double FirstOf(double alone_us, double round_us, int drafts) {
  if (alone_us <= 0 || drafts < 2) return 1;
  const double further_us = (round_us - alone_us) / (drafts - 1);
  return std::clamp(alone_us / std::max(further_us, alone_us / kMostFirst), 1.0, kMostFirst);
}

}  // namespace

double StartMeasurer::SpentUs() const {
  return subject_.now() - begin_us_;
}

bool StartMeasurer::Affordable(double us) const {
  return SpentUs() + us < std::max(kBudgetUs, kBudgetPasses * row_us_);
}

// All passes run in turn, so that a slow moment affects all of them alike.
std::vector<PassCost> StartMeasurer::Passes(int drafts) {
  const int most = std::min(subject_.target.info().max_logit_rows, subject_.most_positions),
            widest = std::min(1 + drafts, most),
            together = subject_.n_sequences > 1 ? 2 * subject_.n_sequences : 0;
  std::vector<PassReading> readings;
  for (const int rows : {1, widest, 3, 5, 2, 9, 17, 33})
    if (rows <= std::max(widest, std::min(together + 1, most)) &&
        std::none_of(readings.begin(), readings.end(),
                     [&](auto& r) { return r.cost.rows == rows; }))
      readings.push_back({.cost = {rows, 0, {}}});
  const int far = std::min(kFarContext, subject_.most_positions - widest);
  if (far >= 512)
    for (const int rows : {widest, 1}) readings.push_back({.cost = {rows, far, {}}});
  PassMeter passes(subject_, std::max(0, far));
  passes.Microseconds(1, 0, true);  // fills the caches
  begin_us_ = subject_.now();
  RowUs(passes);
  for (int repeat = 0; repeat < kMostRepeats && (repeat < kRepeats || SpentUs() < kSoonUs);
       ++repeat) {
    for (PassReading& reading : readings) {
      // Until a pass was timed, each further row counts as a quarter of the first.
      const double us = reading.cost.us.median;
      if (Affordable(us > 0 ? us : row_us_ * (1 + 0.25 * (reading.cost.rows - 1))))
        Read(passes, reading);
    }
    TellMedians(readings, row_us_);
  }
  TakeAgain(passes, readings);
  std::vector<PassCost> costs;
  for (const PassReading& reading : readings)
    if (reading.cost.us.median > 0) costs.push_back(reading.cost);
  if (subject_.target.info().experts.n_layers != 0) MeasureExperts(passes, costs);
  return costs;
}

double StartMeasurer::RowUs(PassMeter& passes) {
  last_row_us_ = passes.Microseconds(1, 0, true);
  row_us_ = row_us_ == 0 ? last_row_us_ : std::min(row_us_, last_row_us_);
  return last_row_us_;
}

void StartMeasurer::Read(PassMeter& passes, PassReading& reading) {
  PassCost& cost = reading.cost;
  const bool one_row = IsOneRow(cost);
  const double before_us = last_row_us_,
               us = one_row ? RowUs(passes) : passes.Microseconds(cost.rows, cost.context, true);
  cost.distinct_experts = passes.result().distinct_experts;
  if (one_row)
    reading.reading.Add(us);
  else
    reading.reading.Add(us, before_us, row_us_ < kShortUs ? RowUs(passes) : 0);
}

// A moment that was bad for one of the passes is over at last.
void StartMeasurer::TakeAgain(PassMeter& passes, std::vector<PassReading>& readings) {
  bool again = true;
  for (int repeat = 0; again && repeat < kMostRepeats; ++repeat) {
    again = false;
    for (PassReading& reading : readings) {
      if (reading.reading.settled() && !Contradicted(reading.cost, readings)) continue;
      if (reading.cost.us.median <= 0 || !Affordable(reading.cost.us.median)) continue;
      again = true;
      Read(passes, reading);
    }
    TellMedians(readings, row_us_);
  }
}

// Rows of one token use the experts of one row. What they cost less than rows of different tokens is
// the cost of the other experts.
void StartMeasurer::MeasureExperts(PassMeter& passes, std::vector<PassCost>& costs) {
  const auto wide = std::max_element(costs.begin(), costs.end(), [](auto& a, auto& b) {
    return std::pair(-a.context, a.rows) < std::pair(-b.context, b.rows);
  });
  if (wide->rows < 2) return;
  passes.RepeatOneToken();
  PassReading alike{.cost = {wide->rows, wide->context, {}}};
  for (int repeat = 0; repeat < kRepeats && Affordable(wide->us.median); ++repeat)
    Read(passes, alike);
  const std::int64_t distinct = alike.cost.distinct_experts;
  if (distinct == 0 || distinct >= wide->distinct_experts) return;
  const double more = static_cast<double>(wide->distinct_experts - distinct);
  expert_us_ = std::max(0.0, (wide->us.median - alike.reading.Us(row_us_)) / more);
  const model::ExpertsInfo& info = subject_.target.info().experts;
  const draft_length::ExpertCosts experts(
      {.layers = info.n_layers, .n = info.n_experts, .used = info.n_used}, expert_us_);
  for (PassCost& cost : costs)
    cost.us.median = std::max(cost.us.median / 2,
                              cost.us.median - experts.BeyondUs(cost.rows, cost.distinct_experts));
}

// What a round costs, measured several times, each between two of these passes; 0: not known. pass: null
// where no passes run between the rounds.
double StartMeasurer::RoundUs(DraftMeter& meter, PassMeter* pass, int sequences, int drafts,
                              int most_repeats) {
  const auto row_us = [&] { return pass == nullptr ? 0 : pass->Microseconds(1, 0, true); };
  Reading reading;
  double spent_us = 0, before_us = row_us();
  for (int repeat = 0; repeat < most_repeats && spent_us <= kDraftBudgetUs / kKinds &&
                       (repeat < kRepeats || spent_us < kSoonDraftUs || !reading.settled());
       ++repeat) {
    const double us = meter.RoundMicroseconds(sequences, drafts), after_us = row_us();
    reading.Add(us, before_us, after_us);
    spent_us += us, before_us = after_us;
  }
  return reading.Us(row_us_);
}

StartMeasurer::DraftCosts StartMeasurer::Drafts(draft::Drafter& drafter) {
  const int drafts = std::min(kDrafts, subject_.drafts), n = subject_.n_sequences;
  const int prompt = n == 1 ? kPrompt : std::max(2, kPrompts / n);
  const int room = (subject_.context - kPrompt - kDrafts - 3) / kKinds;
  if (drafts < 1 || room < kRepeats) return {};
  const int repeats = n == 1 ? std::min(room, kMostDraftRepeats) : kRepeats,
            rounds = kKinds * repeats + 1;
  const DraftSetting setting = {
      .n_sequences = n,
      .context_size = subject_.context,
      .drafts = drafts,
      .features_width = std::int64_t{drafter.Needs().parts()} * subject_.target.info().dim,
      .target_cache = drafter.ReadsTargetCache() ? &subject_.cache : nullptr,
      .sampling = {},
      .now = subject_.now};
  // In a text the target's pass comes before each round, and other weights lie in the CPU's caches then.
  std::optional<PassMeter> pass;
  if (row_us_ > 0 && !drafter.ReadsTargetCache() &&
      (kKinds * kRepeats + 1) * row_us_ < kDraftBudgetUs / 2)
    pass.emplace(subject_, 0);
  DraftMeter meter(drafter, setting, prompt, rounds);
  meter.Microseconds(n);  // reads the contexts
  meter.ReadAgain();
  const auto round = [&](int sequences, int round_drafts) {
    return RoundUs(meter, pass ? &*pass : nullptr, sequences, round_drafts, repeats);
  };
  const double round_us = round(1, drafts);
  DraftCosts costs{.measured = true};
  double parts = 1;  // of a round, in further drafts
  if (!drafter.DraftsAtOnce()) {
    if (pass) costs.first = FirstOf(round(1, 1), round_us, drafts);
    parts = costs.first + drafts - 1;
  }
  costs.one_us = round_us / parts;
  if (n > 1) costs.all_us = round(n, drafts) / parts;
  costs.row_us = meter.RowMicroseconds();
  return costs;
}

}  // namespace foretoken::calibrate
