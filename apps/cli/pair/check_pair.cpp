// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/idle_report.h"
#include "cli/open_engine.h"
#include "cli/pair/check_pair_report.h"
#include "cli/pair/pair_settings.h"
#include "cli/report.h"
#include "cli/sampling_texts.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "draft/methods.h"
#include "foretoken/tools/model_file.h"
#include "settings/llama_flags.h"
#include "settings/option_flags.h"

namespace foretoken::cli {
namespace {

constexpr int kPairPassRepeats = 9;

struct CheckPairSettings : PairSettings {
  int repeats = 3;
  bool stats = false;
};

settings::FlagSet CheckPairFlags(CheckPairSettings& settings) {
  settings::GenerateSettings& generation = settings.generation;
  settings::FlagSet flags(
      "check-pair [-m MODEL -md DRAFT] [flags]",
      "Tells whether one model, or a lookup such as --spec-type ngram, can draft for a model, and "
      "whether it pays on this machine: vocabularies, how many drafts are accepted, and the "
      "speed-up of texts that are decoded plainly and with drafts in turn, as `bench` does. "
      "Without -md it finds drafts as `generate` does, and checks one after "
      "another. Exit code 1 where a pair does not work.");
  flags.Add(settings::ModelFlags(generation.engine));
  settings::FlagGroup measuring = {"Measuring", PromptFlags(settings)};
  measuring.flags.push_back({{"--repeats"},
                             "N",
                             "how often the texts are decoded, plainly and with drafts in turn; "
                             "default 3; up to 5 times as often where that takes less than 2 s",
                             settings::StoreInteger(settings.repeats, 1, 1000)});
  flags.Add(std::move(measuring));
  flags.Add(settings::SpeculationFlags(generation));
  flags.Add(settings::DraftingFlags(generation));
  flags.Add(PairSamplingFlags(settings));
  settings::FlagGroup output = PairOutputFlags(generation);
  output.flags.push_back({{"--stats"},
                          "",
                          "also memory, the costs of passes and drafts, and what follows from them "
                          "for each draft length",
                          settings::StoreTrue(settings.stats)});
  flags.Add(std::move(output));
  flags.SetEssential({"-m", "-c", "-t", "-md", "--spec-type", "--num-speculative-tokens",
                      "--prompts", "-n", "--temp", "--stats", "--json", "-q"});
  settings::AddLlamaFlags(flags);
  flags.SetExamples({"foretoken check-pair",
                     "foretoken check-pair -m target.gguf -md draft.gguf --prompts questions.jsonl",
                     "foretoken check-pair -m target.gguf --spec-type ngram"});
  return flags;
}

// A draft to be checked.
struct Pair {
  EngineOptions options;
  std::string
      draft;  // its file: the model's own if it contains the head; "": lookups, which need none
};

// What an engine finds in and beside the model's file, each draft by itself.
Result<std::vector<Pair>> FoundPairs(const CheckPairSettings& settings) {
  const EngineOptions& options = settings.generation.engine;
  FORETOKEN_TRY(const FoundDrafters found, FindDrafters(options));
  std::vector<std::string> others = found.notices;
  others.insert(others.end(), found.details.begin(), found.details.end());
  if (found.drafters.empty())
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("-md: no draft is given, and none that fits is beside the model{}; name "
                    "a draft model or a head with -md PATH",
                    others.empty() ? "" : fmt::format(" ({})", others.front())));
  if (!settings.generation.quiet)
    for (const std::string& other : others) ReportNotice(other);
  std::vector<Pair> pairs;
  for (const auto& [method, path] : found.drafters) {
    Pair& pair = pairs.emplace_back(Pair{options, path});
    pair.options.speculative.method = method;
    if (path != options.model) pair.options.draft_model = path;
  }
  return pairs;
}

Result<std::vector<Pair>> PairsOf(const CheckPairSettings& settings) {
  const EngineOptions& options = settings.generation.engine;
  const std::string& method = options.speculative.method;
  const std::vector<std::string> files = options.DraftFiles();
  if (files.size() > 1)
    return Fail(ErrorCode::kInvalidArgument,
                "-md: a pair has one draft, and several are given; name one");
  if (!files.empty()) return std::vector{Pair{options, files.front()}};
  if (!method.empty() && FileReader(method) == nullptr) return std::vector{Pair{options, ""}};
  return FoundPairs(settings);
}

class PairMeasurer {
 public:
  PairMeasurer(const CheckPairSettings& settings, const std::vector<BenchPrompt>& prompts)
      : settings_(settings), prompts_(prompts), line_(!settings.generation.quiet) {}

  // `engine` has the user's options. Drafts of one length need the `fixed` controller, so a second
  // engine is opened after this one is closed: both together might not fit into memory.
  Result<PairMeasurement> All(std::unique_ptr<Engine> engine) {
    PairMeasurement m;
    m.controller = engine->summary().controller;
    m.most = engine->summary().num_speculative_tokens;
    FORETOKEN_TRY(m.as_set, Decode(*engine, m.most, "as set"));
    EngineOptions options = settings_.generation.engine;
    if (m.controller != "fixed") {
      options.speculative.controller = "fixed";
      options.speculative.num_speculative_tokens = m.most;
      engine.reset();
      FORETOKEN_TRY(engine, Engine::Open(options));
    }
    FORETOKEN_TRY(m.estimate, Estimate(*engine, m.most));
    if (const int k = m.estimate.best.k; k > 0) {
      FORETOKEN_TRY(m.best, Decode(*engine, k, "at the best length"));
    }
    m.engine = std::move(engine);
    return m;
  }

 private:
  Result<PairEstimate> Estimate(Engine& engine, int most) {
    MeasureOptions options{.rows = {},
                           .contexts = {0},
                           .repeats = kPairPassRepeats,
                           .sampling = settings_.generation.request.sampling,
                           .on_progress = [this](double fraction) {
                             line_.Show(fmt::format("measuring passes {:.0f} %", 100 * fraction));
                           }};
    for (int rows = 1; rows <= 1 + most; ++rows) options.rows.push_back(rows);
    FORETOKEN_TRY(const Measurements measured, engine.Measure(options));
    return EstimatePair(engine, Plan(most, settings_.repeats, "the longest drafts"), measured, 0,
                        most);
  }

  Result<BenchRow> Decode(Engine& engine, int k, const char* what) {
    FORETOKEN_TRY(const BenchRuns runs, RunInTurn(engine, Plan(k, settings_.repeats, what)));
    return runs.batches.front();
  }

  RunPlan Plan(int k, int repeats, const char* what) {
    Request request = settings_.generation.request;
    request.speculative.num_speculative_tokens = k;
    RunPlan plan = PlanOf(request, prompts_, repeats);
    plan.on_run = [this, what](int run, int runs) {
      line_.Show(fmt::format("decoding, {}: run {} of {}", what, run, runs));
    };
    return plan;
  }

  const CheckPairSettings& settings_;
  const std::vector<BenchPrompt>& prompts_;
  ProgressLine line_;
};

// What a draft of another vocabulary misses in plain texts of the prompts.
Result<lab::VocabularyLoss> Loss(const CheckPairSettings& settings,
                                 const std::vector<BenchPrompt>& prompts, const std::string& draft,
                                 const TokenMap& map, Engine& engine) {
  EngineOptions options = settings.generation.engine;
  options.model = draft;
  options.max_sequences = 1;
  FORETOKEN_TRY(const auto scorer, Scorer::Create(std::move(options)));
  lab::VocabularyLoss loss;
  ProgressLine line(!settings.generation.quiet);
  for (const BenchPrompt& prompt : prompts) {
    line.Show("reading plain texts with the draft's vocabulary");
    Request request = settings.generation.request;
    request.prompt = prompt.text;
    request.speculative.enabled = false;
    FORETOKEN_TRY(const Completion text, engine.Generate(request));
    FORETOKEN_CHECK_OK(lab::AddText(*scorer, map, text.prompt_token_ids, text.token_ids, loss));
  }
  return loss;
}

// Prints what it finds. False: the pair does not work.
Result<bool> CheckOne(CheckPairSettings settings, const std::string& draft,
                      const std::vector<BenchPrompt>& prompts) {
  const EngineOptions& options = settings.generation.engine;
  PairCheck check{.fit = {},
                  .obstacle = {},
                  .request = &settings.generation.request,
                  .prompts = static_cast<int>(prompts.size()),
                  .repeats = settings.repeats,
                  .measured = {}};
  FORETOKEN_TRY(check.fit, lab::ExamineFiles(options.model, draft));
  check.obstacle = check.fit.obstacle();
  if (check.obstacle.empty()) {
    auto engine = OpenEngine(options, settings.generation.quiet);
    if (!engine && engine.error().code == ErrorCode::kInvalidArgument)
      return Fail(std::move(engine).error());
    if (!engine)
      check.obstacle = settings::InFlags(engine.error().message);
    else {
      FORETOKEN_CHECK_OK(ReadSamplingTexts(**engine, settings.generation));
      ReportIdleSettings(settings.generation, (*engine)->UseFor(settings.generation.request));
      FORETOKEN_TRY(check.measured, PairMeasurer(settings, prompts).All(std::move(*engine)));
      if (check.fit.map) {
        FORETOKEN_TRY(check.loss,
                      Loss(settings, prompts, draft, *check.fit.map, *check.measured->engine));
      }
    }
  }
  Output output;
  output.Write(settings.generation.json ? PairJson(check) : PairTables(check, settings.stats));
  if (!output.closed_pipe()) FORETOKEN_CHECK_OK(output.status());
  return check.obstacle.empty();
}

Result<int> CheckPair(CheckPairSettings settings) {
  EngineOptions& options = settings.generation.engine;
  if (options.speculative.num_speculative_tokens == 0)
    return Fail(ErrorCode::kInvalidArgument,
                "--num-speculative-tokens: with 0 nothing is drafted; give 1 or more");
  if (options.speculative.method == "none")
    return Fail(ErrorCode::kInvalidArgument,
                "--spec-type: 'none' drafts nothing; leave it out or name another");
  FORETOKEN_TRY(const std::vector<Pair> pairs, PairsOf(settings));
  FORETOKEN_TRY(const std::vector<BenchPrompt> prompts, Prompts(settings));
  bool work = true;
  for (const Pair& pair : pairs) {
    if (&pair != &pairs.front() && !settings.generation.json) Output().Write("\n");
    options = pair.options;
    FORETOKEN_TRY(const bool works, CheckOne(settings, pair.draft, prompts));
    work &= works;
  }
  return work ? kDone : kFailed;
}

Result<int> RunCheckPair(CheckPairSettings& settings) {
  FORETOKEN_CHECK_OK(Finish(settings));
  return CheckPair(settings);
}

}  // namespace

extern const Verb kCheckPairVerb = MakeVerb<CheckPairFlags, RunCheckPair>(
    "check-pair", "tells whether one model can draft for another, and whether it pays");

}  // namespace foretoken::cli
