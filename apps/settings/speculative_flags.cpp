// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "foretoken/catalogue.h"
#include "settings/bundled_models.h"
#include "settings/generate_flags.h"
#include "settings/setters.h"
#include "settings/speculative_sources.h"

namespace foretoken::settings {
namespace {

// A flag for each key of SpeculativeKeys(); the key's own name with hyphens is always one of them.
struct Row {
  std::string_view key;
  std::vector<std::string> names;
  const char* value;
  std::string help;
  std::vector<std::string> choices = {};  // that shells offer
  std::string brief = {};                 // Flag::brief
};

// "name (help); ..." for each row of a registry.
template <typename Info>
std::string Explained(std::span<const Info* const> rows) {
  std::string out;
  for (const Info* const row : rows)
    out += fmt::format("{}{} ({})", out.empty() ? "" : "; ", row->name, row->help);
  return out;
}

template <typename Info>
std::vector<std::string> Choices(std::vector<std::string> choices,
                                 std::span<const Info* const> rows,
                                 const std::vector<std::string>& behind = {}) {
  for (const Info* const row : rows) choices.emplace_back(row->name);
  choices.insert(choices.end(), behind.begin(), behind.end());
  return choices;
}

std::vector<Row> MethodRows() {
  return {
      {"speculative_method",
       {"--spec-type", "--speculative-method"},
       "NAME",
       fmt::format(
           "who drafts: none; {}; several with commas, or portfolio for all of them: each round "
           "takes the most promising one; standalone:NAME is one of several files; default auto: "
           "the draft files' own kind, else ngram; {} for the bundled model",
           Explained(AllDrafters()), kBestMethod),
       Choices({"auto", "none"}, AllDrafters(), {"portfolio"}),
       fmt::format("who drafts: auto (the default), none, {}, or several with commas; --help-all "
                   "says what they are",
                   fmt::join(NamesOf(AllDrafters()), ", "))},
      {"num_speculative_tokens",
       {"--num-speculative-tokens", "--spec-draft-n-max", "--draft-max", "--draft", "--draft-n",
        "--spec-tokens", "--gamma"},
       "K",
       fmt::format("the most tokens that a round drafts, 0 to 64; "
                   "default 16; fixed 4, with bundled drafters {}; ewma 12",
                   kBestTokens)},
      {"min_speculative_tokens",
       {"--spec-draft-n-min", "--draft-min", "--min-speculative-tokens"},
       "N",
       "the shortest draft: a round drafts none or at least N; default 0"},
      {"num_speculative_tokens_mixed_batch",
       {"--num-speculative-tokens-mixed-batch"},
       "K",
       "the most tokens that a round drafts while a prompt is read in the same pass; default as in "
       "other passes"},
      {"draft_p_min",
       {"--spec-draft-p-min", "--draft-p-min"},
       "P",
       "stop drafting where the drafter's best token is less probable; default 0"},
      {"first_target",
       {"--first-target"},
       "on|off",
       "off: the first token may be drafted, and is verified with the prompt; default on"},
      {"draft_vocabulary",
       {"--draft-vocabulary"},
       "N",
       "how many tokens the drafter's reduced output has, the most frequent ones: less work per "
       "draft; "
       "0: none; default 32768 for heads and self with larger vocabularies"},
      {"draft_vocabulary_sample",
       {"--draft-vocabulary-sample"},
       "PATH",
       "a text that shows which tokens are frequent; default: the vocabulary's own order"},
      {"draft_window",
       {"--draft-window"},
       "N",
       "drafters with a network see the first block of 32 positions and the last N alone; 0: all, "
       "but of a text beyond 4,096 tokens draft models see the last 1,024, and self does where "
       "that pays; default 0"},
      {"draft_best_blocks",
       {"--draft-best-blocks"},
       "N",
       "self sees also the N blocks of 32 positions before its window whose keys may fit best, 0 "
       "to "
       "1024; default 0"},
      {"self_draft",
       {"--self-draft"},
       "TYPE[,PART=TYPE...]",
       "the number types of the copy that self drafts with, of its layers and of parts: head, "
       "attention, experts, ends (the first layer and the last), as in Q2_K,head=Q4_K; "
       "own: "
       "the model's own, for --draft-window; off: no copy is made unasked; "
       "default: Q2_K, Q3_K or Q4_K (of short rows Q4_0 or Q5_0), by what was measured of such "
       "copies; else Q2_K"},
  };
}

std::vector<Row> LookaheadRows() {
  return {
      {"lookahead",
       {"--lookahead"},
       "NAME",
       fmt::format(
           "the draft-length controller: {}; default {}; by-text replaces {} where the "
           "text depends on the drafts, so that a seed gives one text",
           Explained(AllControllers()), SpeculativeOptions().controller,
           fmt::join(NamesWith(AllControllers(), &ControllerInfo::follows_load, true), " and ")),
       Choices({}, AllControllers())},
      {"lookahead_initial", {"--lookahead-initial"}, "K", "ewma: K at first; default 5"},
      {"lookahead_min", {"--lookahead-min"}, "K", "ewma: the least K; default 2"},
      {"lookahead_max", {"--lookahead-max"}, "K", "ewma: the most K; default 12"},
      {"lookahead_alpha", {"--lookahead-alpha"}, "A", "ewma: weight of a round; default 0.2"},
      {"lookahead_cooldown_steps",
       {"--lookahead-cooldown-steps"},
       "N",
       "ewma: rounds between two changes; default 4"},
      {"num_speculative_tokens_per_batch_size",
       {"--num-speculative-tokens-per-batch-size"},
       "TABLE",
       "batch-size: K by the number of requests that run together, as in 1-4:8,5-16:2"},
      {"adaptive_speculative_widths",
       {"--adaptive-speculative-widths"},
       "LIST",
       "cost-model, by-text: choose among these numbers of drafts only, as in 1,3,5; default all: "
       "every number up to K"},
  };
}

std::vector<Row> VerifyRows() {
  return {
      {"rejection_sampling_strategy",
       {"--verify", "--rejection-sampling-strategy"},
       "NAME",
       fmt::format("the verification strategy; lossless: auto (chosen by drafter and temperature), "
                   "{}; LOSSY, the text has another distribution: {}; default auto",
                   fmt::join(NamesWith(AllStrategies(), &StrategyInfo::lossless, true), ", "),
                   fmt::join(NamesWith(AllStrategies(), &StrategyInfo::lossless, false), ", ")),
       Choices({"auto"}, AllStrategies())},
      {"acceptance_threshold",
       {"--acceptance-threshold"},
       "T",
       "residual: subtracted from the probability to accept a draft; LOSSY unless 0, the default"},
      {"skip_sample_adjustment",
       {"--skip-sample-adjustment"},
       "",
       "residual: after a rejection draw from the model's own distribution; LOSSY"},
      {"typical_epsilon", {"--typical-epsilon"}, "E", "typical-acceptance: default 0.09"},
      {"typical_delta", {"--typical-delta"}, "D", "typical-acceptance: default 0.3"},
      {"relaxed_top_n", {"--relaxed-top-n"}, "N", "relaxed: among the N best; default 10"},
      {"relaxed_delta",
       {"--relaxed-delta"},
       "D",
       "relaxed: at most D less probable than the best; default 0.6"},
      {"use_relaxed_acceptance_for_thinking",
       {"--use-relaxed-acceptance-for-thinking"},
       "",
       "relaxed verifies the drafts of parts that think, as between <think> and </think>; LOSSY "
       "there"},
      {"thinking_begin",
       {"--thinking-begin"},
       "TEXT",
       "the text before a part that thinks; default: that of the model's chat template"},
      {"thinking_end", {"--thinking-end"}, "TEXT", "the text behind it"},
      {"synthetic_acceptance_rate",
       {"--synthetic-acceptance-rate"},
       "R",
       "benchmarks only: accept this share of the drafts at random, 0 to 1, under any controller; "
       "the text is then not the model's"},
      {"synthetic_acceptance_each",
       {"--synthetic-acceptance-each"},
       "",
       "benchmarks only: that rate is the probability of each draft, so that longer drafts fail "
       "more often, as those of a real drafter do"},
  };
}

std::vector<Row> LookupRows() {
  return {
      {"ngram_max",
       {"--ngram-max", "--spec-ngram-size-n", "--prompt-lookup-max"},
       "N",
       "n-gram: tokens of the longest context that is looked up, 1 to 16; default 3"},
      {"ngram_min", {"--ngram-min", "--prompt-lookup-min"}, "N", "n-gram: shortest one; default 1"},
      {"ngram_storage",
       {"--ngram-storage"},
       "NAME",
       "n-gram: contexts of all those lengths (multi-level, basic) or of the longest only "
       "(single-level, onelevel); default multi-level",
       {"multi-level", "single-level"}},
      {"ngram_filler_top_k",
       {"--ngram-filler-top-k"},
       "N",
       "n-gram: the model's N best tokens at each position count as seen; default 1: off"},
      {"ngram_keep",
       {"--ngram-keep"},
       "on|off",
       "n-gram: later requests use what earlier ones taught; default off"},
      {"ngram_corpus", {"--ngram-corpus"}, "PATH", "n-gram: a text that is known from the start"},
      {"suffix_max_tokens",
       {"--suffix-max-tokens"},
       "N",
       "suffix: the most tokens of earlier texts that are kept; default 1048576"},
      {"profile",
       {"--profile"},
       "PATH",
       "a profile that `foretoken tune` wrote: the costs are known from the first round, and where "
       "no method, draft and K are given, those that it recommends are used"},
  };
}

Setter SetKey(SpeculativeOptions& options, std::string_view name) {
  const SpeculativeKey* const key = FindSpeculativeKey(name);
  return [&options, key](const std::string& text) -> Status {
    if (key->type == SpeculativeKey::Type::kPath && text.empty())
      return Fail(ErrorCode::kInvalidArgument,
                  "the path is empty; name a file or leave the flag out");
    return key->set(options, text);
  };
}

// The member of SpeculativeOptions that the key sets; the names of most are equal.
std::string OptionOf(std::string_view key) {
  if (key == "speculative_method") key = "method";
  if (key == "rejection_sampling_strategy") key = "strategy";
  return fmt::format("SpeculativeOptions::{}", key);
}

Flag FlagOf(Row row, GenerateSettings& settings) {
  const Setter into = SetKey(settings.engine.speculative, row.key);
  const bool is_switch = *row.value == '\0';
  const GivenSetting given = {FindSpeculativeKey(row.key), row.names.front()};
  Setter set = [into, is_switch, given, &settings](const std::string& text) {
    settings.given.push_back(given);
    return into(is_switch ? "on" : text);
  };
  return {.names = std::move(row.names),
          .value = row.value,
          .help = std::move(row.help),
          .set = std::move(set),
          .choices = std::move(row.choices),
          .brief = std::move(row.brief),
          .option = OptionOf(row.key)};
}

// The first one takes the place of those that the settings' file or the environment names.
Setter AddDraftModel(GenerateSettings& settings) {
  return [&settings](const std::string& text) -> Status {
    std::string path;
    FORETOKEN_CHECK_OK(StorePath(path)(text));
    std::vector<std::string>& files = settings.engine.speculative.draft_models;
    if (!std::exchange(settings.draft_model_given, true)) files.clear();
    files.push_back(std::move(path));
    return {};
  };
}

// The file is read, and after it the environment, before any flag that could override them.
void AddSources(FlagGroup& group, GenerateSettings& settings) {
  const auto file = std::make_shared<SpeculativeFile>();
  group.flags.push_back(
      {{"--speculative-config"},
       "FILE",
       "settings of this group from a YAML or JSON file, or a JSON text {...}: the long names with "
       "underscores; flags override them, as do variables FORETOKEN_ + NAME",
       [file](const std::string& text) { return StorePath(file->path)(text); }});
  group.flags.push_back(
      {{"--config-section"},
       "NAME",
       fmt::format("the file's section to read; default {}", kSpeculativeSection),
       [file](const std::string& text) { return StoreText(file->section)(text); }});
  group.flags.push_back(
      {{"--config-dialect"},
       "NAME",
       "the file's dialect: foretoken, or max for Modular MAX (K is 2, and nothing is drafted "
       "unless a method is given); default foretoken, or the file's own key dialect",
       [file](const std::string& text) -> Status {
         FORETOKEN_TRY(file->dialect, ParseConfigDialect(text));
         return {};
       },
       false,
       {"foretoken", "max"}});
  group.n_first = group.flags.size();
  group.after_first = [file, &settings]() -> Status {
    if (file->path.empty() && file->section != kSpeculativeSection)
      return Fail(ErrorCode::kInvalidArgument,
                  "--config-section: there is no file to read it from; add --speculative-config "
                  "FILE");
    if (file->path.starts_with('{') && file->section != kSpeculativeSection)
      return Fail(ErrorCode::kInvalidArgument,
                  "--config-section: settings given as JSON text have no sections; leave it out");
    if (file->path.empty() && file->dialect != ConfigDialect::kForetoken)
      return Fail(ErrorCode::kInvalidArgument,
                  "--config-dialect: there is no file to read; add "
                  "--speculative-config FILE");
    return ReadSpeculativeSources(*file, ProcessEnvironment(), settings.engine.speculative,
                                  settings.given);
  };
}

}  // namespace

FlagGroup SpeculationFlags(GenerateSettings& settings) {
  FlagGroup group = {
      "Speculation (changes the speed, not the text's distribution, unless marked LOSSY)", {}};
  AddSources(group, settings);
  Flag& drafter = group.flags.emplace_back(EngineFlag("draft_model", settings.engine));
  drafter.set = AddDraftModel(settings);
  drafter.repeatable = true;
  for (auto rows : {MethodRows(), LookaheadRows(), VerifyRows(), LookupRows()})
    for (Row& row : rows) group.flags.push_back(FlagOf(std::move(row), settings));
  group.flags.push_back(Sets("SpeculativeParameters::draft_sampling",
                             {{"--draft-temp"},
                              "T",
                              "the drafter's temperature, 0 to 2; default: that of --temp",
                              StoreSampling("temperature", settings.draft_temperature)}));
  group.flags.push_back(EngineFlag("kv_cache", settings.engine));
  return group;
}

FlagGroup DraftingFlags(GenerateSettings& settings) {
  return {"Drafts for this text",
          {
              {{"--prediction"},
               "TEXT",
               "what the text will probably be like: drafts for --spec-type prediction and "
               "portfolio",
               StoreText(settings.request.prediction)},
              {{"--prediction-file"},
               "PATH",
               "the same from a file",
               StoreText(settings.prediction_file)},
              {{"--draft-top-k"},
               "K",
               "the drafter's own --top-k; default: the text's",
               StoreSampling("top_k", settings.draft_top_k)},
              {{"--draft-top-p"},
               "P",
               "the drafter's own --top-p; default: the text's",
               StoreSampling("top_p", settings.draft_top_p)},
              {{"--draft-min-p"},
               "P",
               "the drafter's own --min-p; default: the text's",
               StoreSampling("min_p", settings.draft_min_p)},
          }};
}

}  // namespace foretoken::settings
