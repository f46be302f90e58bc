// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/check_pair_report.h"
#include "cli/open_engine.h"
#include "cli/pair_settings.h"
#include "cli/report.h"
#include "cli/sampling_texts.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "settings/llama_flags.h"

namespace foretoken::cli {
namespace {

constexpr int kMostDrafts = 8;  // where the user sets no limit
constexpr int kPassRepeats = 7;

settings::FlagSet CheckPairFlags(PairSettings& settings) {
  settings::GenerateSettings& generation = settings.generation;
  generation.request.max_new_tokens = 64;
  generation.engine.speculative.lookahead = "fixed";
  settings::FlagSet flags(
      "check-pair [-m MODEL -md DRAFT] [flags]",
      "Tells whether one model can draft for another, and whether it pays on this machine: "
      "vocabularies, memory, costs of passes and drafts, and how many drafts are accepted. Exit "
      "code 1 where the pair does not work.");
  flags.Add(settings::ModelFlags(generation.engine));
  flags.Add({"Measuring", PromptFlags(settings)});
  flags.Add(settings::SpeculationFlags(generation.engine, generation.draft_temperature));
  flags.Add(settings::DraftingFlags(generation));
  flags.Add(settings::SamplingFlags(generation));
  flags.Add(PairOutputFlags(generation));
  flags.SetEssential({"-m", "-c", "-t", "-md", "--spec-type", "--num-speculative-tokens",
                      "--prompts", "-n", "--temp", "--json", "-q"});
  settings::AddLlamaFlags(flags);
  flags.SetExamples(
      {"foretoken check-pair",
       "foretoken check-pair -m target.gguf -md draft.gguf --prompts questions.jsonl"});
  return flags;
}

// The file that drafts: a model's own one where it carries its head.
Result<std::string> DraftFile(const EngineOptions& options) {
  if (!options.draft_model.empty()) return options.draft_model;
  if (options.speculative.method == "mtp") return options.model;
  return Fail(ErrorCode::kInvalidArgument,
              "-md: no draft is given; name a draft model or a head with -md PATH");
}

Result<PairMeasurement> MeasurePair(const PairSettings& settings,
                                    const std::vector<BenchPrompt>& prompts,
                                    std::unique_ptr<Engine> engine) {
  ProgressLine line(!settings.generation.quiet);
  const int most = engine->summary().num_speculative_tokens;
  MeasureOptions options{.rows = {},
                         .contexts = {0},
                         .repeats = kPassRepeats,
                         .sampling = settings.generation.request.sampling,
                         .on_progress = [&line](double fraction) {
                           line.Show(fmt::format("measuring passes {:.0f} %", 100 * fraction));
                         }};
  for (int rows = 1; rows <= 1 + most; ++rows) options.rows.push_back(rows);
  FORETOKEN_TRY(const Measurements measured, engine->Measure(options));
  const auto shown = [&line](const char* what) {
    return [&line, what](double fraction) {
      line.Show(fmt::format("decoding {} {:.0f} %", what, 100 * fraction));
    };
  };
  Request request = settings.generation.request;
  FORETOKEN_CHECK_OK(WarmUp(*engine, request));
  PairMeasurement m;
  request.speculative.enabled = false;
  FORETOKEN_TRY(m.plain, RunPrompts(*engine, request, prompts, shown("plainly")));
  request.speculative.enabled = true;
  FORETOKEN_TRY(m.speculative, RunPrompts(*engine, request, prompts, shown("with drafts")));
  // In texts a draft costs more than measured alone: what the drafter missed is read first.
  const PassCost* draft = measured.DraftCost(1, 0);
  m.prices = PricesOf(measured, 0,
                      std::max(draft != nullptr ? draft->us.median : 0, m.speculative.draft_us()),
                      m.plain.rest_us());
  m.survival = SurvivalOf(m.speculative.stats, most);
  m.best = BestLengthOf(m.prices, m.survival);
  m.break_even = BreakEven(m.prices, most);
  m.engine = std::move(engine);
  return m;
}

Result<int> CheckPair(PairSettings settings) {
  EngineOptions options = settings.generation.engine;
  if (!options.speculative.num_speculative_tokens || settings.default_length)
    options.speculative.num_speculative_tokens = kMostDrafts;
  if (*options.speculative.num_speculative_tokens == 0)
    return Fail(ErrorCode::kInvalidArgument,
                "--num-speculative-tokens: with 0 nothing is drafted; give 1 or more");
  FORETOKEN_TRY(const std::string draft, DraftFile(options));
  FORETOKEN_TRY(const std::vector<BenchPrompt> prompts, Prompts(settings));
  PairCheck check{.fit = {},
                  .obstacle = {},
                  .request = &settings.generation.request,
                  .prompts = static_cast<int>(prompts.size()),
                  .measured = {}};
  FORETOKEN_TRY(check.fit, ExamineFiles(options.model, draft));
  check.obstacle = check.fit.obstacle();
  if (check.obstacle.empty()) {
    auto engine = OpenEngine(options, settings.generation.quiet);
    if (!engine && engine.error().code == ErrorCode::kInvalidArgument)
      return Fail(std::move(engine).error());
    if (!engine)
      check.obstacle = engine.error().message;
    else {
      FORETOKEN_CHECK_OK(ReadSamplingTexts(**engine, settings.generation));
      FORETOKEN_TRY(check.measured, MeasurePair(settings, prompts, std::move(*engine)));
    }
  }
  Output output;
  output.Write(settings.generation.json ? PairJson(check) : PairTables(check));
  if (!output.closed_pipe()) FORETOKEN_CHECK_OK(output.status());
  return check.obstacle.empty() ? kDone : kFailed;
}

}  // namespace

settings::FlagSet DescribeCheckPair() {
  return Described(CheckPairFlags);
}

int RunCheckPair(const Arguments& arguments) {
  PairSettings settings;
  const settings::FlagSet flags = CheckPairFlags(settings);
  if (const auto ended = ReadFlags(flags, arguments)) return *ended;
  if (const Status status = Finish(settings); !status) return ReportError(status.error());
  const Result<int> code = CheckPair(settings);
  return code ? *code : ReportError(code.error());
}

}  // namespace foretoken::cli
