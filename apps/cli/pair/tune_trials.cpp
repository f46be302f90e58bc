// SPDX-License-Identifier: Apache-2.0
#include "cli/pair/tune_trials.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/input.h"
#include "foretoken/catalogue.h"
#include "foretoken/tools/model_file.h"
#include "lab/tune_choice.h"

namespace foretoken::cli {
namespace {

constexpr double kClearlyFaster = 1.03;  // less cannot be told from chance
constexpr int kTrialPassRepeats = 9;
constexpr int kMostContext = 2048;
constexpr std::size_t kFinalists = 3;

class Tuner {
 public:
  explicit Tuner(const TunePlan& plan) : plan_(plan) {}

  Result<Tuning> All() {
    FORETOKEN_CHECK_OK(FindDrafters());
    FORETOKEN_CHECK_OK(MeasurePasses());
    for (std::size_t i = 0; i < tuning_.drafters.size(); ++i) {
      Show(fmt::format("drafting by {}", Shown(tuning_.drafters[i])), i, tuning_.drafters.size());
      FORETOKEN_CHECK_OK(Estimate(tuning_.drafters[i]));
    }
    FORETOKEN_CHECK_OK(RunFinalists());
    return std::move(tuning_);
  }

 private:
  static std::string Shown(const TunedDrafter& drafter) {
    if (!drafter.self_draft.empty()) return drafter.method + " in " + drafter.self_draft;
    return drafter.file.empty() ? drafter.method : FileName(drafter.file);
  }

  void Show(const std::string& what, std::size_t done, std::size_t all) const {
    if (plan_.on_progress)
      plan_.on_progress(what, static_cast<double>(done) / static_cast<double>(all));
  }

  Status FindDrafters() {
    for (const std::string& path : plan_.draft_files) {
      FORETOKEN_TRY(const auto file, ModelFile::Open(path));
      FORETOKEN_TRY(auto model, ProfileModel::Of(path));
      tuning_.drafters.push_back(Drafter(file->drafts_as(), path, std::move(model)));
    }
    FORETOKEN_TRY(const auto target, ModelFile::Open(plan_.options.model));
    if (target->drafts_as() == "mtp") {
      FORETOKEN_TRY(auto model, ProfileModel::Of(plan_.options.model));
      tuning_.drafters.push_back(Drafter("mtp", "", std::move(model)));
    }
    for (const DrafterInfo* const row : AllDrafters()) {
      if (row->copies_target) FORETOKEN_CHECK_OK(FindCopies(std::string(row->name)));
      if (!row->reads_file && !row->copies_target && row->drafts_from.empty())
        tuning_.drafters.push_back(Drafter(std::string(row->name), "", {}));
    }
    return {};
  }

  // Those that were named, or those that an engine offers and that are likely to pay.
  Result<std::vector<ModelCopy>> Copies() const {
    EngineOptions options = plan_.options;
    options.speculative.self_draft.clear();
    if (plan_.self_drafts.empty()) {
      FORETOKEN_TRY(auto copies, DescribeCopies(options));
      std::erase_if(copies, [](const ModelCopy& copy) { return !copy.is_likely_to_pay; });
      return copies;
    }
    std::vector<ModelCopy> copies;
    for (const std::string& names : plan_.self_drafts) {
      if (names == "off") continue;
      options.speculative.self_draft = names;
      FORETOKEN_TRY(const ModelCopy copy, DescribeCopy(options));
      if (std::none_of(copies.begin(), copies.end(),
                       [&](const ModelCopy& other) { return copy.types == other.types; }))
        copies.push_back(copy);
    }
    return copies;
  }

  Status FindCopies(const std::string& method) {
    FORETOKEN_TRY(const auto copies, Copies());
    for (const ModelCopy& copy : copies) {
      if (!copy.obstacle.empty()) {
        tuning_.notices.push_back(
            fmt::format("no copy of the model in {} was tried: {}", copy.types, copy.obstacle));
        continue;
      }
      FORETOKEN_TRY(auto model, ProfileModel::Of(plan_.options.model));
      tuning_.drafters.push_back(Drafter(method, "", std::move(model)));
      tuning_.drafters.back().self_draft = copy.types;
    }
    return {};
  }

  static TunedDrafter Drafter(std::string method, std::string file, ProfileModel model) {
    TunedDrafter drafter;
    drafter.method = std::move(method);
    drafter.file = std::move(file);
    drafter.model = std::move(model);
    return drafter;
  }

  // A new engine for each trial, so that the controller has learned nothing from others.
  Result<std::unique_ptr<Engine>> Open(const TunedDrafter* drafter, const std::string& controller,
                                       int k) const {
    EngineOptions options = plan_.options;
    options.draft_model = drafter != nullptr ? drafter->file : "";
    options.speculative.draft_models.clear();
    options.speculative.method = drafter != nullptr ? drafter->method : "none";
    options.speculative.self_draft = drafter != nullptr ? drafter->self_draft : "";
    options.speculative.controller = controller;
    options.speculative.num_speculative_tokens = k;
    return Engine::Open(std::move(options));
  }

  Status MeasurePasses() {
    FORETOKEN_TRY(const auto engine, Open(nullptr, "fixed", 0));
    const EngineSummary& summary = engine->summary();
    tuning_.isa = summary.isa;
    tuning_.threads = summary.threads;
    MeasureOptions options{.rows = {},
                           .contexts = {0},
                           .repeats = kTrialPassRepeats,
                           .sampling = plan_.request.sampling,
                           .on_progress = [this](double fraction) {
                             if (plan_.on_progress) plan_.on_progress("measuring passes", fraction);
                           }};
    for (int rows = 1; rows <= 1 + plan_.most_drafts; ++rows) options.rows.push_back(rows);
    options.rows.push_back(2 * plan_.most_drafts);
    const int room = summary.target.context_size - 2 * plan_.most_drafts - 1;
    if (const int second = std::min(kMostContext, room / 2); second > 0)
      options.contexts.push_back(second);
    FORETOKEN_TRY(tuning_.measured, engine->Measure(options));
    FORETOKEN_TRY(const BenchRuns plain,
                  RunInTurn(*engine, PlanOf(plan_.request, plan_.prompts, 1)));
    const SpeculationStats& stats = plain.batches.front().plain_stats;
    if (stats.rounds > 0)
      tuning_.rest_us = 1000 * stats.overhead_ms / static_cast<double>(stats.rounds);
    return {};
  }

  Status Estimate(TunedDrafter& drafter) {
    FORETOKEN_TRY(const auto engine, Open(&drafter, "fixed", plan_.most_drafts));
    FORETOKEN_TRY(drafter.estimate,
                  EstimatePair(*engine, PlanOf(plan_.request, plan_.prompts, plan_.repeats),
                               tuning_.measured, tuning_.context, plan_.most_drafts));
    return {};
  }

  // The drafters with the best estimates, each with its best K and with the controller that looks
  // for K while it runs.
  void ChooseFinalists() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < tuning_.drafters.size(); ++i)
      if (tuning_.drafters[i].estimate.best.k > 0) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return tuning_.drafters[a].estimate.best.speedup > tuning_.drafters[b].estimate.best.speedup;
    });
    order.resize(std::min(order.size(), kFinalists));
    for (const std::size_t i : order) {
      tuning_.trials.push_back({i, "fixed", tuning_.drafters[i].estimate.best.k, {}, {}});
      tuning_.trials.push_back({i, "cost-model", plan_.most_drafts, {}, {}});
    }
  }

  // Runs all trials in turn, again and again.
  Status RunFinalists() {
    ChooseFinalists();
    for (int repeat = 0; repeat < plan_.repeats; ++repeat)
      for (TuneTrial& trial : tuning_.trials) FORETOKEN_CHECK_OK(Run(trial, repeat, "running"));
    std::vector<std::vector<double>> speedups;
    for (const TuneTrial& trial : tuning_.trials) speedups.push_back(trial.speedups);
    const auto chosen = lab::ChooseTrial(speedups);
    if (!chosen) return {};
    TuneTrial again = tuning_.trials[*chosen];
    again.speedups.clear(), again.rates.clear();
    for (int repeat = 0; repeat < plan_.repeats; ++repeat)
      FORETOKEN_CHECK_OK(Run(again, repeat, "confirming"));
    if (again.speedup().median >= kClearlyFaster) tuning_.recommended = std::move(again);
    return {};
  }

  // As bench: plain and with drafts in turn, on one engine that has run before.
  Status Run(TuneTrial& trial, int repeat, const char* what) {
    const TunedDrafter& drafter = tuning_.drafters[trial.drafter];
    Show(fmt::format("{} {}, {}", what, Shown(drafter), trial.controller),
         static_cast<std::size_t>(repeat), static_cast<std::size_t>(plan_.repeats));
    FORETOKEN_TRY(const auto engine, Open(&drafter, trial.controller, trial.k));
    FORETOKEN_TRY(const BenchRuns runs,
                  RunInTurn(*engine, PlanOf(plan_.request, plan_.prompts, 1)));
    const BenchRow& row = runs.batches.front();
    trial.speedups.push_back(row.speedup->median);
    trial.rates.push_back(row.speculative->median);
    plain_rates_.push_back(row.plain.median);
    tuning_.plain_tokens_per_second = SpreadOf(plain_rates_);
    return {};
  }

  const TunePlan& plan_;
  Tuning tuning_;
  std::vector<double> plain_rates_;
};

}  // namespace

Result<Tuning> Tune(const TunePlan& plan) {
  return Tuner(plan).All();
}

Result<Profile> ProfileOf(const Tuning& tuning, const std::string& target) {
  Profile profile;
  profile.machine = ProfileMachine::This(tuning.isa, tuning.threads);
  FORETOKEN_TRY(profile.target, ProfileModel::Of(target));
  for (const PassCost& cost : tuning.measured.target)
    profile.passes.push_back(
        {cost.context, cost.rows, lab::PassesOf(tuning.measured, cost.context).at(cost.rows)});
  for (const TunedDrafter& drafter : tuning.drafters) {
    const PairEstimate& estimate = drafter.estimate;
    const DrafterInfo* const info = FindDrafter(drafter.method);
    const bool at_once = info != nullptr && info->drafts_at_once;
    if (estimate.stats.drafted > 0)
      profile.drafts.push_back({drafter.method, drafter.model,
                                lab::DraftPriceOf(estimate.prices, estimate.stats, at_once),
                                drafter.self_draft});
  }
  profile.rest_us = tuning.rest_us;
  if (tuning.recommended) {
    const TuneTrial& best = *tuning.recommended;
    const TunedDrafter& drafter = tuning.drafters[best.drafter];
    profile.recommendation = {drafter.method,  FileName(drafter.file), best.k,
                              best.controller, best.speedup().median,  drafter.self_draft};
  }
  return profile;
}

}  // namespace foretoken::cli
