// SPDX-License-Identifier: Apache-2.0
#include "cli/tune_trials.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/input.h"
#include "foretoken/model_file.h"

namespace foretoken::cli {
namespace {

constexpr double kWorthwhile = 1.03;  // less is not told from chance
constexpr int kPassRepeats = 7;
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
      FORETOKEN_CHECK_OK(Draft(tuning_.drafters[i]));
    }
    FORETOKEN_CHECK_OK(RunFinalists());
    return std::move(tuning_);
  }

 private:
  static std::string Shown(const TunedDrafter& drafter) {
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
    for (const char* method : {"ngram", "suffix"})
      tuning_.drafters.push_back(Drafter(method, "", {}));
    return {};
  }

  static TunedDrafter Drafter(std::string method, std::string file, ProfileModel model) {
    TunedDrafter drafter;
    drafter.method = std::move(method);
    drafter.file = std::move(file);
    drafter.model = std::move(model);
    return drafter;
  }

  // A new one each time: drafters that learn from texts would know the prompts' answers by now.
  Result<std::unique_ptr<Engine>> Open(const TunedDrafter* drafter, const std::string& lookahead,
                                       int k) const {
    EngineOptions options = plan_.options;
    options.draft_model = drafter != nullptr ? drafter->file : "";
    options.speculative.method = drafter != nullptr ? drafter->method : "none";
    options.speculative.lookahead = lookahead;
    options.speculative.num_speculative_tokens = k;
    FORETOKEN_TRY(auto engine, Engine::Open(std::move(options)));
    FORETOKEN_CHECK_OK(WarmUp(*engine, plan_.request));
    return engine;
  }

  Result<PromptsRun> Decode(Engine& engine, bool speculates) const {
    Request request = plan_.request;
    request.speculative.enabled = speculates;
    return RunPrompts(engine, request, plan_.prompts);
  }

  Status MeasurePasses() {
    FORETOKEN_TRY(const auto engine, Open(nullptr, "fixed", 0));
    const EngineSummary& summary = engine->summary();
    tuning_.isa = summary.isa;
    tuning_.threads = summary.threads;
    MeasureOptions options{.rows = {},
                           .contexts = {0},
                           .repeats = kPassRepeats,
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
    FORETOKEN_TRY(const PromptsRun plain, Decode(*engine, false));
    tuning_.prices = PricesOf(tuning_.measured, tuning_.context, 0, plain.rest_us());
    return {};
  }

  Status Draft(TunedDrafter& drafter) const {
    FORETOKEN_TRY(const auto engine, Open(&drafter, "fixed", plan_.most_drafts));
    FORETOKEN_TRY(const PromptsRun run, Decode(*engine, true));
    drafter.stats = run.stats;
    drafter.draft_us = run.draft_us();
    drafter.survival = SurvivalOf(run.stats, plan_.most_drafts);
    RoundPrices prices = tuning_.prices;
    prices.draft = drafter.draft_us;
    drafter.expected = BestLengthOf(prices, drafter.survival);
    return {};
  }

  // The drafters that promise most, with the K that does, and with the controller that looks for
  // it while it runs.
  void ChooseFinalists() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < tuning_.drafters.size(); ++i)
      if (tuning_.drafters[i].expected.k > 0) order.push_back(i);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return tuning_.drafters[a].expected.speedup > tuning_.drafters[b].expected.speedup;
    });
    order.resize(std::min(order.size(), kFinalists));
    for (const std::size_t i : order) {
      tuning_.trials.push_back({i, "fixed", tuning_.drafters[i].expected.k, {}, {}});
      tuning_.trials.push_back({i, "cost-model", plan_.most_drafts, {}, {}});
    }
  }

  Status RunFinalists() {
    ChooseFinalists();
    std::vector<double> plain_rates;
    std::vector<std::vector<double>> speedups(tuning_.trials.size()), rates = speedups;
    const std::size_t all = tuning_.trials.size() * static_cast<std::size_t>(plan_.repeats);
    std::size_t done = 0;
    for (int repeat = 0; repeat < plan_.repeats; ++repeat)
      for (std::size_t i = 0; i < tuning_.trials.size(); ++i) {
        const TuneTrial& trial = tuning_.trials[i];
        const TunedDrafter& drafter = tuning_.drafters[trial.drafter];
        Show(fmt::format("running {}, {}", Shown(drafter), trial.lookahead), done++, all);
        FORETOKEN_TRY(const auto engine, Open(&drafter, trial.lookahead, trial.k));
        FORETOKEN_TRY(const PromptsRun plain, Decode(*engine, false));
        FORETOKEN_TRY(const PromptsRun speculative, Decode(*engine, true));
        if (!(plain.tokens_per_second() > 0) || !(speculative.tokens_per_second() > 0))
          return Fail(
              ErrorCode::kInvalidArgument,
              "tune: every text ended with its first token; raise -n or give other prompts");
        plain_rates.push_back(plain.tokens_per_second());
        rates[i].push_back(speculative.tokens_per_second());
        speedups[i].push_back(speculative.tokens_per_second() / plain.tokens_per_second());
      }
    for (std::size_t i = 0; i < tuning_.trials.size(); ++i) {
      tuning_.trials[i].speedup = SpreadOf(speedups[i]);
      tuning_.trials[i].tokens_per_second = SpreadOf(rates[i]);
    }
    tuning_.plain_tokens_per_second = SpreadOf(plain_rates);
    return {};
  }

  const TunePlan& plan_;
  Tuning tuning_;
};

}  // namespace

const TuneTrial* Tuning::Best() const {
  const auto best = std::max_element(
      trials.begin(), trials.end(),
      [](const TuneTrial& a, const TuneTrial& b) { return a.speedup.median < b.speedup.median; });
  return best == trials.end() || best->speedup.median < kWorthwhile ? nullptr : &*best;
}

Result<Tuning> Tune(const TunePlan& plan) {
  return Tuner(plan).All();
}

Result<Profile> ProfileOf(const Tuning& tuning, const std::string& target) {
  Profile profile;
  profile.machine = ProfileMachine::This(tuning.isa, tuning.threads);
  FORETOKEN_TRY(profile.target, ProfileModel::Of(target));
  for (const PassCost& cost : tuning.measured.target)
    profile.passes.push_back(
        {cost.context, cost.rows, PricesOf(tuning.measured, cost.context, 0, 0).Pass(cost.rows)});
  for (const TunedDrafter& drafter : tuning.drafters)
    if (drafter.stats.drafted > 0)
      profile.drafts.push_back({drafter.method, drafter.model, drafter.draft_us});
  profile.rest_us = tuning.prices.rest;
  if (const TuneTrial* best = tuning.Best()) {
    const TunedDrafter& drafter = tuning.drafters[best->drafter];
    profile.recommendation = {drafter.method, FileName(drafter.file), best->k, best->lookahead,
                              best->speedup.median};
  }
  return profile;
}

}  // namespace foretoken::cli
