// SPDX-License-Identifier: Apache-2.0
#include "calibrate/measurer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "calibrate/draft_meter.h"
#include "calibrate/host_meter.h"
#include "calibrate/pass_meter.h"
#include "loader/ranks/memory_meter.h"

namespace foretoken::calibrate {
namespace {

constexpr int kWarmUps = 2;  // rounds that do not count
// Passes of a small model until the caches hold it as they do in a text: reading the memory's speed
// empties them, and without these one row, which comes first, seemed dearer than two.
constexpr int kSettling = 4;
constexpr int kPromptRepeats = 3;  // of the longest pass, at most

std::vector<int> Ascending(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// The readings of a grid of passes so far.
class Readings {
 public:
  Readings(const std::vector<int>& rows, const std::vector<int>& contexts) {
    for (const int context : contexts)
      for (const int r : rows) cells_.push_back({r, context, {}});
  }
  struct Cell {
    int rows, context;
    std::vector<double> us;
    std::int64_t distinct_experts = 0;
  };
  std::vector<Cell>& cells() { return cells_; }
  // Points without readings are left out.
  std::vector<PassCost> Costs() const {
    std::vector<PassCost> costs;
    for (const Cell& cell : cells_)
      if (!cell.us.empty())
        costs.push_back({cell.rows, cell.context, SpreadOf(cell.us), cell.distinct_experts});
    return costs;
  }

 private:
  std::vector<Cell> cells_;
};

// Reports the progress to the caller, in passes.
class Progress {
 public:
  Progress(const MeasureOptions& options, std::size_t n_passes)
      : options_(options), n_passes_(static_cast<double>(n_passes)) {}
  void Passed() {
    if (options_.on_progress) options_.on_progress(std::min(1.0, ++n_passed_ / n_passes_));
  }

 private:
  const MeasureOptions& options_;
  const double n_passes_;
  double n_passed_ = 0;
};

class Measurer {
 public:
  Measurer(const MeasureOptions& options, const MeasuredParts& parts)
      : options_(options),
        parts_(parts),
        subject_(parts.subject),
        rows_(Ascending(options.rows)),
        contexts_(Ascending(options.contexts)),
        progress_(options, NumberOfPasses()) {}

  Measurements Measure() {
    Measurements m;
    MeasureTarget(m);
    MeasureDrafts(m);
    MeasureHost(m);
    return m;
  }

 private:
  std::size_t Rounds() const { return static_cast<std::size_t>(options_.repeats + kWarmUps); }
  bool Drafts() const { return parts_.drafter != nullptr; }
  int NumberOfDrafts() const { return std::max(1, subject_.drafts); }
  int PromptRepeats() const { return std::min(options_.repeats, kPromptRepeats); }
  int PromptRows() const { return std::min(parts_.prefill_rows, subject_.most_positions); }
  std::vector<int> DraftOptions() const {
    std::vector<int> rows = {1};
    for (const int r : rows_)
      if (r > 1 && r <= subject_.n_sequences) rows.push_back(r);
    return rows;
  }
  std::size_t NumberOfPasses() const {
    const auto reached = std::count_if(contexts_.begin(), contexts_.end(),
                                       [this](int context) { return DraftReaches(context); });
    const std::size_t drafts =
        Drafts() ? static_cast<std::size_t>(reached) * DraftOptions().size() : 0;
    const auto prompts = static_cast<std::size_t>(PromptRepeats());
    return Rounds() * (contexts_.size() * rows_.size() + drafts) + prompts;
  }

  void MeasureTarget(Measurements& m) {
    loader::MemoryMeter memory(subject_.pool, subject_.kernels);
    PassMeter passes(subject_, contexts_.back());
    Readings readings(rows_, contexts_);
    std::vector<double> bandwidths;
    for (int round = -kWarmUps; round < options_.repeats; ++round) {
      const double bandwidth = memory.GigabytesPerSecond();
      if (round >= 0) bandwidths.push_back(bandwidth);
      if (passes.passes_per_reading() > 1)
        for (int i = 0; i < kSettling; ++i) passes.Microseconds(1, 0, true);
      for (Readings::Cell& cell : readings.cells()) {
        const double us = passes.Microseconds(cell.rows, cell.context, true);
        if (round >= 0) cell.us.push_back(us);
        cell.distinct_experts = passes.result().distinct_experts;
        progress_.Passed();
      }
    }
    m.memory_gb_per_s = SpreadOf(bandwidths);
    m.target = readings.Costs();
    for (PassCost& cost : m.target)
      if (cost.distinct_experts > 0)
        cost.read_bytes = subject_.target.info().ReadBytes(cost.distinct_experts);
    m.prompt_rows = PromptRows();
    std::vector<double> rates;
    for (int i = 0; i < PromptRepeats(); ++i) {
      rates.push_back(1e6 * m.prompt_rows / passes.Microseconds(m.prompt_rows, 0, false));
      progress_.Passed();
    }
    m.prompt_tokens_per_second = SpreadOf(rates);
  }

  void MeasureDrafts(Measurements& m) {
    if (!Drafts()) return;
    const draft::Drafter& drafter = *parts_.drafter;
    const DraftSetting setting = {
        .n_sequences = subject_.n_sequences,
        .context_size = subject_.context,
        .drafts = NumberOfDrafts(),
        .features_width = std::int64_t{drafter.Needs().parts()} * subject_.target.info().dim,
        .target_cache = drafter.ReadsTargetCache() ? &subject_.cache : nullptr,
        .sampling = options_.sampling,
        .now = subject_.now};
    const std::vector<int> rows = DraftOptions();
    for (const int context : contexts_) {
      Readings readings(rows, {context});
      if (DraftReaches(context)) MeasureDraftsAt(context, setting, readings);
      const auto costs = readings.Costs();
      m.draft.insert(m.draft.end(), costs.begin(), costs.end());
    }
  }

  // A drafter that cannot hold the context is left out before it reads it.
  bool DraftReaches(int context) const {
    return parts_.draft_context == 0 || context + NumberOfDrafts() < parts_.draft_context;
  }

  void MeasureDraftsAt(int context, const DraftSetting& setting, Readings& readings) {
    const auto rounds = static_cast<int>(Rounds() * readings.cells().size());
    DraftMeter drafts(*parts_.drafter, setting, context, rounds);
    drafts.Microseconds(setting.n_sequences);  // reads the context
    for (int round = -kWarmUps; round < options_.repeats; ++round)
      for (Readings::Cell& cell : readings.cells()) {
        const std::uint32_t before = subject_.pool.barriers_passed();
        const double us = drafts.Microseconds(cell.rows);
        draft_barriers_ =
            static_cast<int>(subject_.pool.barriers_passed() - before) / setting.drafts;
        if (round >= 0 && us >= 0) cell.us.push_back(us);
        progress_.Passed();
      }
  }

  void MeasureHost(Measurements& m) {
    StepOverhead& overhead = m.overhead;
    const auto median = [this](auto&& reading) {
      std::vector<double> us;
      for (std::size_t i = 0; i < Rounds(); ++i) us.push_back(reading());
      return SpreadOf(std::move(us)).median;
    };
    ThreadPool& pool = subject_.pool;
    overhead.dispatch_us = median([&] { return DispatchMicroseconds(pool); });
    overhead.barrier_us = median([&] { return BarrierMicroseconds(pool); });
    PassMeter pass(subject_, 0);
    pass.KeepRowsWhole();
    const std::uint32_t before = pool.barriers_passed();
    pass.Microseconds(1, 0, true);
    overhead.target_barriers =
        static_cast<int>(pool.barriers_passed() - before) / pass.passes_per_reading();
    overhead.draft_barriers = draft_barriers_;
    const int k = std::min({NumberOfDrafts(), subject_.MaxRows() - 1, subject_.most_positions - 1});
    pass.Microseconds(k + 1, 0, true);
    VerifyMeter verifier_meter(parts_.verifier, MakeSampler(k),
                               {pass.result().logits, pass.result().logits_stride}, k);
    overhead.verified_rows = k + 1;
    overhead.verify_us = median([&] { return verifier_meter.VerifyMicroseconds(); });
    overhead.draw_us = median([&] { return verifier_meter.DrawMicroseconds(); });
  }

  sampling::Sampler MakeSampler(int k) const {
    sampling::Sampler sampler(
        {.parameters = options_.sampling, .end_tokens = {}, .min_new_tokens = 0, .noise = {}},
        subject_.vocabulary, subject_.kernels);
    const Token first = 0;
    sampler.Begin({&first, 1}, k + 1);
    return sampler;
  }

  const MeasureOptions& options_;
  const MeasuredParts& parts_;
  const Subject& subject_;
  int draft_barriers_ = 0;  // that one more draft of all sequences passes
  std::vector<int> rows_, contexts_;
  Progress progress_;
};

}  // namespace

Status CheckMeasure(const MeasureOptions& options, const Subject& subject) {
  const auto bad = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  FORETOKEN_CHECK_OK(options.sampling.Validate(subject.vocabulary));
  if (options.repeats < 1 || options.repeats > 10'000)
    return bad(fmt::format("repeats: {} is out of range; use 1 to 10000", options.repeats));
  if (options.rows.empty()) return bad("rows: there are none; give at least one, such as 1");
  if (options.contexts.empty())
    return bad("contexts: there are none; give at least one, such as 0");
  const int max_rows = subject.MaxRows();
  for (const int rows : options.rows)
    if (rows < 1 || rows > max_rows)
      return bad(fmt::format("rows: {} is out of range; use 1 to {}", rows, max_rows));
  const int most_rows = *std::max_element(options.rows.begin(), options.rows.end());
  for (const int context : options.contexts) {
    if (context < 0) return bad(fmt::format("contexts: {} is negative; use 0 or more", context));
    if (context > subject.most_positions - most_rows)
      return Fail(ErrorCode::kTooLarge,
                  fmt::format("contexts: {} positions and {} rows do not fit a context of {}; "
                              "measure less, or raise EngineOptions::context_size",
                              context, most_rows, subject.most_positions));
  }
  return {};
}

Measurements Measure(const MeasureOptions& options, const MeasuredParts& parts) {
  return Measurer(options, parts).Measure();
}

}  // namespace foretoken::calibrate
