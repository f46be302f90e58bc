// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cli/input.h"
#include "cli/pair/pair_settings.h"
#include "cli/pair/tune_trials.h"
#include "cli/report.h"
#include "cli/sampling_texts.h"
#include "cli/terminal.h"
#include "cli/verb.h"
#include "cli/verb_flags.h"
#include "foretoken/catalogue.h"
#include "settings/bundled_models.h"
#include "settings/llama_flags.h"

namespace foretoken::cli {
namespace {

struct TuneSettings : PairSettings {
  std::vector<std::string> draft_files, self_drafts;
  std::string output;
  int most_drafts = 8, repeats = 3;
};

settings::FlagGroup TuningFlags(TuneSettings& settings) {
  std::vector<settings::Flag> flags = {
      {{"-md", "--model-draft", "--spec-draft-model"},
       "PATH",
       "a draft model or a head to try; may be repeated; default: those of the bundled model",
       [&settings](const std::string& text) -> Status {
         std::string path;
         FORETOKEN_CHECK_OK(settings::StorePath(path)(text));
         settings.draft_files.push_back(std::move(path));
         return {};
       },
       true},
      {{"--self-draft"},
       "TYPE[,PART=TYPE...]",
       "the number types of a copy with which the model drafts for itself, to try; may be "
       "repeated; off: "
       "none; default: Q2_K, Q3_K and Q4_K (of short rows Q4_0 and Q5_0) where drafts of such a "
       "copy are likely to pay",
       [&settings](const std::string& text) -> Status {
         settings.self_drafts.push_back(text);
         return {};
       },
       true},
      {{"-o", "--output"},
       "PATH",
       "the profile that is written; default: the model's file name and .profile.json, here",
       settings::StorePath(settings.output)},
      {{"--num-speculative-tokens", "--spec-draft-n-max", "--draft-max", "--draft", "--gamma"},
       "K",
       "the longest draft to try, 1 to 32; default 8",
       settings::StoreInteger(settings.most_drafts, 1, 32)},
      {{"--repeats"},
       "N",
       "how often the best ones are run beside plain decoding, in turn, and then the chosen one by "
       "itself; default 3",
       settings::StoreInteger(settings.repeats, 1, 1000)},
  };
  for (settings::Flag& flag : PromptFlags(settings)) flags.push_back(std::move(flag));
  return {"Tuning", std::move(flags)};
}

settings::FlagSet TuneFlags(TuneSettings& settings) {
  settings::GenerateSettings& generation = settings.generation;
  settings::FlagSet flags(
      "tune [-m MODEL] [-md DRAFT]... [flags]",
      "Finds out what drafts best for a model on this machine: measures passes and drafts, runs "
      "the "
      "most promising drafters, draft lengths and controllers beside plain decoding, and writes a "
      "profile, which other verbs read with --profile.");
  flags.Add(settings::ModelFlags(generation.engine));
  flags.Add(TuningFlags(settings));
  flags.Add(PairSamplingFlags(settings));
  flags.Add(PairOutputFlags(generation));
  flags.SetEssential({"-m", "-c", "-t", "-md", "-o", "--num-speculative-tokens", "--prompts", "-n",
                      "--temp", "--json", "-q"});
  settings::AddLlamaFlags(flags);
  flags.SetExamples(
      {"foretoken tune",
       "foretoken tune -m target.gguf -md draft.gguf -md head.gguf --prompts questions.jsonl"});
  return flags;
}

// Runs before Finish names the bundled models.
Status FillInDrafts(TuneSettings& settings) {
  EngineOptions& options = settings.generation.engine;
  if (!options.model.empty()) return {};
  FORETOKEN_TRY(const auto bundled,
                settings::BundledModels::Find(settings::ModelPlaces::OfThisProgram()));
  options.model = bundled.target();
  if (!settings.draft_files.empty()) return {};
  for (const DrafterInfo* const row : AllDrafters())
    if (auto path = bundled.Drafter(row->name)) settings.draft_files.push_back(std::move(*path));
  return {};
}

Result<int> TuneAndSave(TuneSettings settings) {
  FORETOKEN_CHECK_OK(ReadSamplingTexts(settings.generation));
  FORETOKEN_TRY(const std::vector<BenchPrompt> prompts, Prompts(settings));
  ProgressLine line(!settings.generation.quiet);
  const TunePlan plan{.options = settings.generation.engine,
                      .request = settings.generation.request,
                      .prompts = prompts,
                      .draft_files = settings.draft_files,
                      .self_drafts = settings.self_drafts,
                      .most_drafts = settings.most_drafts,
                      .repeats = settings.repeats,
                      .on_progress = [&line](const std::string& what, double fraction) {
                        line.Show(fmt::format("{}: {:.0f} %", what, 100 * fraction));
                      }};
  FORETOKEN_TRY(const Tuning tuning, Tune(plan));
  FORETOKEN_TRY(const Profile profile, ProfileOf(tuning, plan.options.model));
  const std::string path =
      settings.output.empty() ? FileName(plan.options.model) + ".profile.json" : settings.output;
  FORETOKEN_CHECK_OK(profile.Save(path));
  line.Clear();
  Output output;
  output.Write(settings.generation.json ? TuningJson(tuning, profile, path)
                                        : TuningTables(tuning, profile, path));
  if (!output.closed_pipe()) FORETOKEN_CHECK_OK(output.status());
  return kDone;
}

Result<int> RunTune(TuneSettings& settings) {
  FORETOKEN_CHECK_OK(FillInDrafts(settings));
  FORETOKEN_CHECK_OK(Finish(settings));
  return TuneAndSave(settings);
}

}  // namespace

extern const Verb kTuneVerb = MakeVerb<TuneFlags, RunTune>(
    "tune", "finds what drafts best for a model here, and writes a profile");

}  // namespace foretoken::cli
