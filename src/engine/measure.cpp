// SPDX-License-Identifier: Apache-2.0
// Measures the engine's own models. Each repeat goes round all passes in turn, so that a slow
// moment of the machine hits all alike.
#include "foretoken/tools/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "calibrate/draft_meter.h"
#include "calibrate/host_meter.h"
#include "calibrate/memory_meter.h"
#include "calibrate/pass_meter.h"
#include "engine/impl.h"
#include "model/arch/registry.h"

namespace foretoken {
namespace {

constexpr int kWarmUps = 2;        // rounds that do not count
constexpr int kPromptRepeats = 3;  // of the longest pass, at most

std::vector<int> Ascending(std::vector<int> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// Readings of a grid of passes, as they come in.
class Readings {
 public:
  Readings(const std::vector<int>& rows, const std::vector<int>& contexts) {
    for (const int context : contexts)
      for (const int r : rows) cells_.push_back({r, context, {}});
  }
  struct Cell {
    int rows, context;
    std::vector<double> us;
  };
  std::vector<Cell>& cells() { return cells_; }
  // Points without readings are left out.
  std::vector<PassCost> Costs() const {
    std::vector<PassCost> costs;
    for (const Cell& cell : cells_)
      if (!cell.us.empty()) costs.push_back({cell.rows, cell.context, SpreadOf(cell.us)});
    return costs;
  }

 private:
  std::vector<Cell> cells_;
};

// Tells the caller how far the measuring is, in passes.
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

}  // namespace

class Engine::Impl::Measurer {
 public:
  Measurer(Impl& impl, const MeasureOptions& options)
      : impl_(impl),
        options_(options),
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
  bool Drafts() const { return !impl_.default_drafters_.empty(); }
  // That drafts where a request names no method: the first of several.
  draft::Drafter& Drafter() const {
    return *impl_.drafters_[static_cast<std::size_t>(impl_.default_drafters_.front())].drafter;
  }
  int NumberOfDrafts() const {
    return std::max(1, *impl_.options_.speculative.num_speculative_tokens);
  }
  int PromptRepeats() const { return std::min(options_.repeats, kPromptRepeats); }
  int PromptRows() const { return std::min(impl_.options_.prefill_rows, impl_.MostPositions()); }
  std::vector<int> DraftRows() const {
    std::vector<int> rows = {1};
    for (const int r : rows_)
      if (r > 1 && r <= static_cast<int>(impl_.sequences_.size())) rows.push_back(r);
    return rows;
  }
  std::size_t NumberOfPasses() const {
    const auto reached = std::count_if(contexts_.begin(), contexts_.end(),
                                       [this](int context) { return DraftReaches(context); });
    const std::size_t drafts =
        Drafts() ? static_cast<std::size_t>(reached) * DraftRows().size() : 0;
    const auto prompts = static_cast<std::size_t>(PromptRepeats());
    return Rounds() * (contexts_.size() * rows_.size() + drafts) + prompts;
  }

  void MeasureTarget(Measurements& m) {
    calibrate::MemoryMeter memory(*impl_.pool_, *impl_.kernels_);
    calibrate::PassMeter passes(*impl_.target_, *impl_.cache_, contexts_.back());
    Readings readings(rows_, contexts_);
    std::vector<double> bandwidths;
    for (int round = -kWarmUps; round < options_.repeats; ++round) {
      const double bandwidth = memory.GigabytesPerSecond();
      if (round >= 0) bandwidths.push_back(bandwidth);
      for (Readings::Cell& cell : readings.cells()) {
        const double us = passes.Microseconds(cell.rows, cell.context, true);
        if (round >= 0) cell.us.push_back(us);
        progress_.Passed();
      }
    }
    m.memory_gb_per_s = SpreadOf(bandwidths);
    m.target = readings.Costs();
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
    const calibrate::DraftSetting setting = {
        .n_sequences = static_cast<int>(impl_.sequences_.size()),
        .context_size = impl_.context_size_,
        .drafts = NumberOfDrafts(),
        .features_width = std::int64_t{Drafter().Needs().parts()} * impl_.target_->info().dim,
        .sampling = options_.sampling};
    const std::vector<int> rows = DraftRows();
    for (const int context : contexts_) {
      Readings readings(rows, {context});
      if (DraftReaches(context)) MeasureDraftsAt(context, setting, readings);
      const auto costs = readings.Costs();
      m.draft.insert(m.draft.end(), costs.begin(), costs.end());
    }
  }

  // Reading a context that the drafter must give up on would be waste.
  bool DraftReaches(int context) const {
    const auto& draft = impl_.summary_.draft;
    return !draft || context + NumberOfDrafts() < draft->context_size;
  }

  void MeasureDraftsAt(int context, const calibrate::DraftSetting& setting, Readings& readings) {
    const auto rounds = static_cast<int>(Rounds() * readings.cells().size());
    calibrate::DraftMeter drafts(Drafter(), setting, context, rounds);
    drafts.Microseconds(setting.n_sequences);  // reads the context
    for (int round = -kWarmUps; round < options_.repeats; ++round)
      for (Readings::Cell& cell : readings.cells()) {
        const std::uint32_t before = impl_.pool_->barriers_passed();
        const double us = drafts.Microseconds(cell.rows);
        draft_barriers_ =
            static_cast<int>(impl_.pool_->barriers_passed() - before) / setting.drafts;
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
    ThreadPool& pool = *impl_.pool_;
    overhead.dispatch_us = median([&] { return calibrate::DispatchMicroseconds(pool); });
    overhead.barrier_us = median([&] { return calibrate::BarrierMicroseconds(pool); });
    calibrate::PassMeter pass(*impl_.target_, *impl_.cache_, 0);
    const std::uint32_t before = pool.barriers_passed();
    pass.Microseconds(1, 0, true);
    overhead.target_barriers =
        static_cast<int>(pool.barriers_passed() - before) / pass.passes_per_reading();
    overhead.draft_barriers = draft_barriers_;
    const int k = std::min({NumberOfDrafts(), MaxRows(impl_) - 1, impl_.MostPositions() - 1});
    pass.Microseconds(k + 1, 0, true);
    Request request;
    request.sampling = options_.sampling;
    calibrate::JudgeMeter judge(impl_.VerifierFor(request), MakeSampler(k),
                                {pass.result().logits, pass.result().logits_stride}, k);
    overhead.judged_rows = k + 1;
    overhead.judge_us = median([&] { return judge.JudgeMicroseconds(); });
    overhead.draw_us = median([&] { return judge.DrawMicroseconds(); });
  }

  sampling::Sampler MakeSampler(int k) const {
    sampling::Sampler sampler(
        {.parameters = options_.sampling, .end_tokens = {}, .min_new_tokens = 0, .noise = {}},
        impl_.vocabulary_, *impl_.kernels_);
    const Token first = 0;
    sampler.Begin({&first, 1}, k + 1);
    return sampler;
  }

 public:
  static int MaxRows(const Impl& impl) {
    const model::RunnerInfo& info = impl.target_->info();
    return std::min(info.max_rows, info.max_logit_rows);
  }

 private:
  Impl& impl_;
  const MeasureOptions& options_;
  int draft_barriers_ = 0;  // that one more draft of all sequences passes
  std::vector<int> rows_, contexts_;
  Progress progress_;
};

Status Engine::Impl::Check(const MeasureOptions& options) const {
  const auto bad = [](std::string message) {
    return Fail(ErrorCode::kInvalidArgument, std::move(message));
  };
  FORETOKEN_CHECK_OK(options.sampling.Validate(vocabulary_));
  if (options_.speculative.strategy == VerifyStrategy::kGreedy && !options.sampling.greedy())
    return bad("measure: 'greedy' verifies only at temperature 0; set the temperature to 0");
  if (options.repeats < 1 || options.repeats > 10'000)
    return bad(fmt::format("repeats: {} is out of range; use 1 to 10000", options.repeats));
  if (options.rows.empty()) return bad("rows: there are none; give at least one, such as 1");
  if (options.contexts.empty())
    return bad("contexts: there are none; give at least one, such as 0");
  const int max_rows = Measurer::MaxRows(*this);
  for (const int rows : options.rows)
    if (rows < 1 || rows > max_rows)
      return bad(fmt::format("rows: {} is out of range; use 1 to {}", rows, max_rows));
  const int most_rows = *std::max_element(options.rows.begin(), options.rows.end());
  for (const int context : options.contexts) {
    if (context < 0) return bad(fmt::format("contexts: {} is negative; use 0 or more", context));
    if (context > MostPositions() - most_rows)
      return Fail(ErrorCode::kTooLarge,
                  fmt::format("contexts: {} positions and {} rows do not fit a context of {}; "
                              "measure less, or raise --ctx-size",
                              context, most_rows, MostPositions()));
  }
  return {};
}

Result<Measurements> Engine::Impl::Measure(const MeasureOptions& options) {
  FORETOKEN_CHECK_OK(Check(options));
  return Measurer(*this, options).Measure();
}

}  // namespace foretoken
