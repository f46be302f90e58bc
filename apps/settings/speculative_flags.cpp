// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "settings/bundled_models.h"
#include "settings/generate_flags.h"
#include "settings/setters.h"

namespace foretoken::settings {
namespace {

// A method's name here, or "" where this version does not have it.
struct MethodName {
  std::string_view name, method;
};
constexpr std::array<MethodName, 20> kMethods = {{
    {"none", "none"},
    {"standalone", "standalone"},
    {"draft", "standalone"},
    {"draft-simple", "standalone"},
    {"draft-model", "standalone"},
    {"draft_model", "standalone"},
    {"ngram", "ngram"},
    {"ngram-simple", "ngram"},
    {"ngram-map-k", "ngram"},
    {"ngram-map-k4v", "ngram"},
    {"ngram-mod", "ngram"},
    {"ngram-cache", "ngram"},
    {"eagle", "eagle"},
    {"eagle3", "eagle"},
    {"draft-eagle3", "eagle"},
    {"mtp", "mtp"},
    {"draft-mtp", "mtp"},
    {"nextn", "mtp"},
    {"suffix", ""},
    {"portfolio", ""},
}};

Status SetMethod(EngineOptions& options, const std::string& text) {
  constexpr std::string_view kExisting = "none, standalone, eagle, mtp, ngram";
  if (text.find(',') != std::string::npos) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' is a portfolio, which this version does not have; choose one of {}", text,
                    kExisting));
  }
  const auto* const row = std::find_if(kMethods.begin(), kMethods.end(),
                                       [&](const MethodName& m) { return m.name == text; });
  if (row == kMethods.end()) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("'{}' is no drafter; choose one of {}", text, kExisting));
  }
  if (row->method.empty()) {
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("this version has no drafter '{}' yet; choose one of {}", text, kExisting));
  }
  options.speculative.method = row->method;
  return {};
}

Status SetStrategy(EngineOptions& options, const std::string& text) {
  constexpr std::array<std::pair<std::string_view, VerifyStrategy>, 5> kStrategies = {{
      {"auto", VerifyStrategy::kAuto},
      {"greedy", VerifyStrategy::kGreedy},
      {"residual", VerifyStrategy::kResidual},
      {"sample-match", VerifyStrategy::kSampleMatch},
      {"sample_match", VerifyStrategy::kSampleMatch},
  }};
  for (const auto& [name, strategy] : kStrategies) {
    if (name == text) {
      options.speculative.strategy = strategy;
      return {};
    }
  }
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("this version has no strategy '{}'; choose one of auto, greedy, residual, "
                  "sample-match",
                  text));
}

Status SetLookahead(EngineOptions& options, const std::string& text) {
  if (text != "fixed" && text != "ewma" && text != "heuristic" && text != "cost-model")
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "this version has no controller '{}'; choose fixed, ewma, heuristic or cost-model",
            text));
  options.speculative.lookahead = text;
  return {};
}

}  // namespace

FlagGroup SpeculationFlags(EngineOptions& options, std::optional<float>& draft_temperature) {
  SpeculativeOptions& speculative = options.speculative;
  return {
      "Speculation (changes the speed, never the text's law)",
      {
          {{"-md", "--model-draft", "--spec-draft-model"},
           "PATH",
           "what drafts: a small model with the same vocabulary, or a head that was trained for "
           "the model",
           StorePath(options.draft_model)},
          {{"--spec-type"},
           "NAME",
           fmt::format(
               "who drafts: none, standalone (a small model), eagle or mtp (heads of the model), "
               "ngram (looks up the text so far); default: what the file of -md is; without -md, "
               "{} for the bundled model, else ngram",
               kBestMethod),
           [&options](const std::string& text) { return SetMethod(options, text); }},
          {{"--num-speculative-tokens", "--spec-draft-n-max", "--draft-max", "--draft", "--gamma"},
           "K",
           fmt::format("tokens drafted per round, 0 to 64; default 4, with bundled drafters {}",
                       kBestTokens),
           StoreInteger(speculative.num_speculative_tokens, 0, 64)},
          {{"--spec-draft-p-min", "--draft-p-min"},
           "P",
           "stop drafting where the drafter's best token is less probable; default 0",
           StoreNumber(speculative.draft_p_min, 0, 1)},
          {{"--lookahead"},
           "NAME",
           "how K is chosen: fixed; ewma (follows the mean of accepted drafts, K at most 12); "
           "heuristic (two more after a draft accepted whole, else one less, at most 8); "
           "cost-model "
           "(what promises the most tokens per second, none included, at most 8); default fixed",
           [&options](const std::string& text) { return SetLookahead(options, text); }},
          {{"--verify", "--rejection-sampling-strategy"},
           "NAME",
           "how drafts are judged: auto, greedy, residual, sample-match; all are lossless; default "
           "auto: by drafter and temperature",
           [&options](const std::string& text) { return SetStrategy(options, text); }},
          {{"--draft-vocabulary"},
           "N",
           "tokens that a draft model's output head keeps, the most frequent ones: less work per "
           "draft where vocabularies are large; default 0: all",
           StoreInteger(speculative.draft_vocabulary, 0, 1 << 24)},
          {{"--draft-vocabulary-sample"},
           "PATH",
           "a text that shows which tokens are frequent; default: the vocabulary's own order",
           StorePath(speculative.draft_vocabulary_sample)},
          {{"--synthetic-acceptance-rate"},
           "R",
           "benchmarks only: accept this share of the drafts by lot, 0 to 1; the text is then not "
           "the model's",
           StoreNumber(speculative.synthetic_acceptance_rate, 0, 1)},
          {{"--draft-temp"},
           "T",
           "the drafter's temperature, 0 to 2; default: that of --temp",
           StoreNumber(draft_temperature, 0, 2)},
      }};
}

}  // namespace foretoken::settings
