// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "cli/idle_report.h"
#include "cli/open_engine.h"
#include "cli/pair/certify_report.h"
#include "cli/pair/pair_settings.h"
#include "cli/report.h"
#include "cli/sampling_texts.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "settings/llama_flags.h"

namespace foretoken::cli {
namespace {

constexpr int kDistributionDrafts = 4;   // K of the distribution test if none is given
constexpr int kDistributionPrompts = 2;  // its contexts if no number of prompts is given
constexpr int kDistributionBatch = 8;
constexpr int kMostSamples = 4;  // times the samples, while the negative control passes

struct CertifySettings : PairSettings {
  std::vector<int> ks = {1, 2, 4, 8}, batches = {1, 4};
  bool stochastic = false;
  int samples = 20'000;
};

settings::FlagGroup CertifyingFlags(CertifySettings& settings) {
  std::vector<settings::Flag> flags = PromptFlags(settings);
  flags.push_back({{"--ks"},
                   "K,K,...",
                   "draft lengths that are tried, 1 to 64; default 1,2,4,8",
                   settings::StoreList(settings.ks, 1, 64)});
  flags.push_back({{"--batch"},
                   "N,N,...",
                   "requests that run together, 1 to 256; default 1,4",
                   settings::StoreList(settings.batches, 1, 256)});
  flags.push_back(
      {{"--stochastic"},
       "",
       "also draw texts again and again and test that they have plain decoding's distribution, "
       "beside a rule that is known to change it and must fail",
       settings::StoreTrue(settings.stochastic)});
  flags.push_back({{"--samples"},
                   "N",
                   "texts drawn of each kind and context; default 20000, and up to four times as "
                   "many while the control does not fail",
                   settings::StoreInteger(settings.samples, 100, 100'000'000)});
  return {"Certifying", std::move(flags)};
}

settings::FlagSet CertifyFlags(CertifySettings& settings) {
  settings::GenerateSettings& generation = settings.generation;
  generation.request.max_new_tokens = 64;
  generation.engine.speculative.controller = "fixed";  // else K would only be the most
  settings::FlagSet flags(
      "certify [-m MODEL] [-md DRAFT] [flags]",
      "Shows on your own models that speculation changes nothing: texts of temperature 0, and "
      "sampled ones where the seed decides, are compared with plain decoding's, token by token and "
      "log-probability by log-probability, for several K and batch sizes. The last lines say what "
      "was shown and what was not. Exit code 0 where the strategy that the flags choose was shown "
      "to be exact, 1 where a text differs (the first difference is printed) or the strategy was "
      "not tested: --verify residual, for example, needs --stochastic.");
  flags.Add(settings::ModelFlags(generation.engine));
  flags.Add(CertifyingFlags(settings));
  flags.Add(settings::SpeculationFlags(generation));
  flags.Add(settings::DraftingFlags(generation));
  flags.Add(settings::SamplingFlags(generation));
  flags.Add(PairOutputFlags(generation));
  flags.SetEssential({"-m", "-c", "-t", "-md", "--spec-type", "--verify", "--prompts", "-n",
                      "--stochastic", "--temp", "--seed", "--json", "-q"});
  settings::AddLlamaFlags(flags);
  flags.SetExamples(
      {"foretoken certify",
       "foretoken certify -m target.gguf -md draft.gguf --prompts questions.jsonl --batch 1,8",
       "foretoken certify -m target.gguf -md draft.gguf --stochastic --temp 0.9 --top-p 0.95"});
  return flags;
}

Status Check(const CertifySettings& settings) {
  if (settings.stochastic && settings.generation.request.sampling.greedy())
    return Fail(
        ErrorCode::kInvalidArgument,
        "--stochastic: at temperature 0 there is no distribution to test; raise --temp or leave "
        "--stochastic out");
  return {};
}

Status CheckDrafter(const EngineSummary& summary) {
  if (summary.method != "none" && summary.num_speculative_tokens > 0) return {};
  return Fail(ErrorCode::kInvalidArgument,
              "certify: nothing drafts, so there is nothing to compare; choose a drafter with -md "
              "or --spec-type, and K above 0");
}

// The strategy that verifies such requests with these flags. Certifying fixes the draft lengths.
// The default controller does not, and if no strategy is named it uses sample-match.
std::string StrategyInUse(const Engine& engine, const settings::GenerateSettings& generation) {
  const SpeculativeOptions& options = generation.engine.speculative;
  const bool by_default = std::none_of(
      generation.given.begin(), generation.given.end(),
      [](const settings::GivenSetting& given) { return given.key->name == "lookahead"; });
  const bool open = options.strategy == VerifyStrategy::kAuto &&
                    !options.synthetic_acceptance_rate && options.acceptance_threshold == 0 &&
                    !options.skip_sample_adjustment;
  if (by_default && open && !generation.request.sampling.greedy()) return "sample-match";
  return engine.UseFor(generation.request).strategies.front();
}

// Texts are compared with drafts of temperature 0, and for the lengths of --ks.
void ReportIdle(const Engine& engine, const CertifySettings& settings) {
  const settings::GenerateSettings& generation = settings.generation;
  SpeculativeUse use = engine.UseFor(generation.request);
  Request greedy = generation.request;
  greedy.sampling.temperature = 0;
  use.Add(engine.UseFor(greedy));
  std::vector<settings::IdleSetting> more;
  const char* const why = "only --stochastic reads it";
  if (!settings.stochastic) {
    if (generation.request.speculative.draft_sampling)
      more.push_back({"the sampling of drafts", why});
    if (!settings.default_length) more.push_back({"--num-speculative-tokens", "--ks decides"});
    if (settings.samples != CertifySettings().samples) more.push_back({"--samples", why});
  }
  ReportIdleSettings(generation, use, std::move(more));
}

Result<Equality> CompareTexts(Engine& engine, const CertifySettings& settings,
                              const std::vector<BenchPrompt>& prompts) {
  ProgressLine line(!settings.generation.quiet);
  return CompareWithPlain(engine, {.request = settings.generation.request,
                                   .prompts = prompts,
                                   .ks = settings.ks,
                                   .batches = settings.batches,
                                   .on_run = [&line](int run, int runs) {
                                     line.Show(fmt::format("comparing: run {} of {}", run, runs));
                                   }});
}

Result<DistributionVerdict> CompareDistribution(Engine& engine, const EngineOptions& options,
                                                const CertifySettings& settings,
                                                std::vector<BenchPrompt> prompts) {
  if (settings.max_prompts == 0 && prompts.size() > kDistributionPrompts)
    prompts.resize(kDistributionPrompts);
  ProgressLine line(!settings.generation.quiet);
  DistributionPlan plan{.request = settings.generation.request,
                        .prompts = std::move(prompts),
                        .samples = settings.samples,
                        .most_samples = kMostSamples * settings.samples,
                        .on_progress = [&line](const std::string& what, double fraction) {
                          line.Show(fmt::format("drawing {}: {:.0f} %", what, 100 * fraction));
                        }};
  plan.request.speculative.num_speculative_tokens =
      options.speculative.num_speculative_tokens.value_or(kDistributionDrafts);
  FORETOKEN_TRY(const std::string strategy, StrategyOf(engine, plan));
  std::string name;
  const EngineOptions control_options = ControlOptions(options, strategy, name);
  FORETOKEN_TRY(const std::unique_ptr<Engine> control,
                OpenEngine(control_options, settings.generation.quiet));
  FORETOKEN_TRY(DistributionVerdict verdict, TestDistribution(engine, *control, plan));
  verdict.control = name;
  return verdict;
}

Result<int> Certify(CertifySettings settings) {
  FORETOKEN_TRY(const std::vector<BenchPrompt> prompts, Prompts(settings));
  EngineOptions options = settings.generation.engine;
  options.max_sequences =
      std::max(settings.batches.back(), settings.stochastic ? kDistributionBatch : 1);
  FORETOKEN_CHECK_OK(AskForOwnCopy(options));
  FORETOKEN_TRY(const std::unique_ptr<Engine> engine,
                OpenEngine(options, settings.generation.quiet));
  FORETOKEN_CHECK_OK(CheckDrafter(engine->summary()));
  FORETOKEN_CHECK_OK(ReadSamplingTexts(*engine, settings.generation));
  Certification certification{.engine = &engine->summary(),
                              .request = &settings.generation.request,
                              .prompts = static_cast<int>(prompts.size()),
                              .equality = {},
                              .distribution = {},
                              .strategy = StrategyInUse(*engine, settings.generation)};
  ReportIdle(*engine, settings);
  FORETOKEN_TRY(certification.equality, CompareTexts(*engine, settings, prompts));
  if (settings.stochastic) {
    FORETOKEN_TRY(certification.distribution,
                  CompareDistribution(*engine, options, settings, prompts));
  }
  Output output;
  output.Write(settings.generation.json ? CertificationJson(certification)
                                        : CertificationTables(certification, *engine));
  if (!output.closed_pipe()) FORETOKEN_CHECK_OK(output.status());
  return certification.certificate() == Certificate::kExact ? kDone : kFailed;
}

Result<int> RunCertify(CertifySettings& settings) {
  FORETOKEN_CHECK_OK(Finish(settings));
  FORETOKEN_CHECK_OK(Check(settings));
  return Certify(settings);
}

}  // namespace

extern const Verb kCertifyVerb = MakeVerb<CertifyFlags, RunCertify>(
    "certify", "proves on your models that speculation changes nothing");

}  // namespace foretoken::cli
