// SPDX-License-Identifier: Apache-2.0
// foretoken cluster check: what the ranks that mpirun has started are, and how fast a model runs on them.
#include <fmt/format.h>

#include "cli/cluster/cluster_report.h"
#include "cli/idle_report.h"
#include "cli/open_engine.h"
#include "cli/pair/pair_settings.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "settings/llama_flags.h"

namespace foretoken::cli {
namespace {

constexpr int kPassRepeats = 9;
constexpr int kMostDrafts = 8;  // that are measured, unless the user says how many

struct ClusterSettings : PairSettings {
  std::string what;
  int repeats = 3;
};

settings::FlagSet ClusterFlags(ClusterSettings& settings) {
  settings::GenerateSettings& generation = settings.generation;
  settings::FlagSet flags(
      "cluster check [-m MODEL -md DRAFT] [flags]",
      "Run it with mpirun: one table of the ranks and their machines, and one of what gathers cost "
      "them. With a model it also tells how fast 1 to all ranks decode, with and without drafts. "
      "The speed of all ranks is measured; that of fewer is computed from it.");
  flags.SetPositional("check", settings::StoreText(settings.what), {"check"});
  flags.Add(settings::ModelFlags(generation.engine));
  settings::FlagGroup measuring = {"Measuring", PromptFlags(settings)};
  measuring.flags.push_back({{"--repeats"},
                             "N",
                             "how often the texts are decoded, plainly and with drafts in turn; "
                             "default 3",
                             settings::StoreInteger(settings.repeats, 1, 1000)});
  flags.Add(std::move(measuring));
  flags.Add(settings::SpeculationFlags(generation));
  flags.Add(settings::DraftingFlags(generation));
  flags.Add(PairSamplingFlags(settings));
  flags.Add(PairOutputFlags(generation));
  flags.SetEssential({"-m", "-c", "-t", "-md", "--spec-type", "--num-speculative-tokens",
                      "--prompts", "-n", "--temp", "--json", "-q"});
  settings::AddLlamaFlags(flags);
  flags.SetExamples({"mpirun -n 2 foretoken cluster check",
                     "mpirun -n 2 --host node1,node2 foretoken cluster check -m target.gguf -md "
                     "draft.gguf"});
  return flags;
}

// What the engine's passes of one row have exchanged among n ranks since `before`.
void SetTraffic(const EngineCounts::Passes& before, const EngineCounts::Passes& now, double n,
                ClusterModel& model) {
  const auto passes = static_cast<double>(now.passes - before.passes);
  if (passes <= 0) return;
  const RankTraffic traffic = now.traffic.Since(before.traffic);
  model.traffic = {.gathers = static_cast<double>(traffic.gathers) / passes,
                   .bytes = static_cast<double>(traffic.gathered_bytes) / passes * n / (n - 1),
                   .share = traffic.wait_us / (now.us - before.us)};
  model.gather_us = traffic.wait_us / passes;
}

class ModelMeasurer {
 public:
  ModelMeasurer(const ClusterSettings& settings, const ClusterFacts& facts)
      : settings_(settings), facts_(facts), line_(!settings.generation.quiet) {}

  Result<ClusterModel> Measure() {
    EngineOptions options = settings_.generation.engine;
    options.speculative.controller = "fixed";
    if (settings_.default_length) options.speculative.num_speculative_tokens = kMostDrafts;
    FORETOKEN_TRY(const std::vector<BenchPrompt> prompts, Prompts(settings_));
    FORETOKEN_TRY(std::unique_ptr<Engine> engine, OpenEngine(options, settings_.generation.quiet));
    const EngineSummary& summary = engine->summary();
    ClusterModel model{.path = summary.target.path, .method = summary.method};
    const int most = summary.method == "none" ? 0 : summary.num_speculative_tokens;
    FORETOKEN_TRY(const Measurements measured, engine->Measure(Passes(most)));
    const EngineCounts::Passes before = engine->counts().verify.front();
    RunPlan plan = PlanOf(settings_.generation.request, prompts, settings_.repeats);
    plan.on_run = [this](int run, int runs) {
      line_.Show(fmt::format("decoding: run {} of {}", run, runs));
    };
    FORETOKEN_TRY(model.estimate, Estimate(*engine, plan, measured, most));
    SetTraffic(before, engine->counts().verify.front(), static_cast<double>(facts_.ranks.size()),
               model);
    model.speeds = PredictSpeeds(facts_, model);
    return model;
  }

 private:
  MeasureOptions Passes(int most) {
    MeasureOptions options{.rows = {},
                           .contexts = {0},
                           .repeats = kPassRepeats,
                           .sampling = settings_.generation.request.sampling,
                           .on_progress = [this](double fraction) {
                             line_.Show(fmt::format("measuring passes {:.0f} %", 100 * fraction));
                           }};
    for (int rows = 1; rows <= 1 + most; ++rows) options.rows.push_back(rows);
    return options;
  }

  // Where nothing drafts, plain runs alone.
  static Result<PairEstimate> Estimate(Engine& engine, const RunPlan& plan,
                                       const Measurements& measured, int most) {
    if (most > 0) return EstimatePair(engine, plan, measured, 0, most);
    FORETOKEN_TRY(const BenchRuns runs, RunInTurn(engine, plan));
    const SpeculationStats& plain = runs.batches.front().plain_stats;
    PairEstimate estimate;
    estimate.prices =
        lab::PricesOf(measured, 0, {.plain = plain, .shortest = {}, .longest = plain});
    return estimate;
  }

  const ClusterSettings& settings_;
  const ClusterFacts& facts_;
  ProgressLine line_;
};

Result<int> CheckCluster(ClusterSettings settings, bool with_model) {
  settings::GenerateSettings& generation = settings.generation;
  if (generation.engine.ranks == nullptr)
    return Fail(ErrorCode::kInvalidArgument,
                "cluster check: this process is alone; start several with 'mpirun -n 2 foretoken "
                "cluster check'");
  ClusterCheck check;
  FORETOKEN_TRY(check.facts, MeasureCluster(generation.engine));
  if (with_model) {
    FORETOKEN_TRY(check.model, ModelMeasurer(settings, check.facts).Measure());
  }
  Output output;
  output.Write(generation.json ? ClusterJson(check) : ClusterTables(check));
  if (!output.closed_pipe()) FORETOKEN_CHECK_OK(output.status());
  return kDone;
}

Result<int> RunCluster(ClusterSettings& settings) {
  if (settings.what != "check")
    return InvalidArgument(
        fmt::format("cluster: '{}' is not something it does; give 'check'", Shown(settings.what)));
  const bool with_model = !settings.generation.engine.model.empty();
  FORETOKEN_CHECK_OK(Finish(settings));
  return CheckCluster(std::move(settings), with_model);
}

}  // namespace

extern const Verb kClusterVerb = MakeVerb<ClusterFlags, RunCluster>(
    "cluster", "checks the machines that run one model together");

}  // namespace foretoken::cli
