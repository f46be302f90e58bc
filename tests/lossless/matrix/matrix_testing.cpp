// SPDX-License-Identifier: Apache-2.0
#include "lossless/matrix/matrix_testing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "foretoken/catalogue.h"
#include "foretoken/drafter.h"
#include "lossless/same_bits_testing.h"

namespace foretoken {
namespace {

constexpr int kMatrixVocabulary = 320;
constexpr std::int32_t kEnd = 2, kFirstLetter = 259;  // before it: bytes

// By method.
const std::map<std::string, std::string>& TinyFiles() {
  static const auto files = WriteDrafts(
      fixtures::TinyOptions(
          "seed=81 n_layers=1 dim=32 ff=32 n_heads=2 n_kv_heads=1 vocab=320 context_length=96"),
      {{"mtp", {.layers = {0, 0, 1}}},
       {"eagle", {.eagle = true, .layers = {0, 0, 1}}},
       {"dflash", {.block = true, .layers = {0, 0, 1}}}},
      0.2);
  return files;
}

// Its drafts have tests of their own: forced_tokens_test.cpp.
constexpr std::string_view kGrammar = "a grammar";

std::vector<std::int32_t> FirstPrompt() {
  return {1, 262, 265, 270, 262, 265, 271, 262, 270, 265};
}

constexpr float kNever = -std::numeric_limits<float>::infinity();

// A random model prefers bytes that no text contains, and a prediction must be a text.
void KeepLetters(std::span<const std::int32_t>, std::span<float> logits) {
  for (std::int32_t id = 0; id < kFirstLetter; ++id)
    if (id != kEnd) logits[static_cast<std::size_t>(id)] = kNever;
}
Request InLetters() {
  Request r;
  r.ignore_eos = true;
  r.sampling.temperature = 0.7f;
  r.sampling.processors = {KeepLetters};
  return r;
}

// Properties of the model's plain texts, by which drafters and parameters are chosen, so that they
// have an effect.
struct Facts {
  std::vector<std::int32_t> prompt;                             // its words come again
  std::vector<std::int32_t> common;                             // tokens, the commonest first
  std::map<std::int32_t, std::vector<std::int32_t>> followers;  // of a token, the commonest first
  std::string prediction, letters;
};

std::vector<std::int32_t> ByCount(const std::map<std::int32_t, int>& counts) {
  std::vector<std::int32_t> tokens;
  for (const auto& [token, n] : counts) tokens.push_back(token);
  std::stable_sort(tokens.begin(), tokens.end(),
                   [&](auto a, auto b) { return counts.at(a) > counts.at(b); });
  return tokens;
}

// A text with which plain decoding is likely to begin, whose first tokens are tokenized as they
// were generated, except for the space before them.
std::string LikelyText(const Engine& engine, const std::vector<Completion>& texts) {
  std::map<std::vector<std::int32_t>, int> beginnings;
  const auto beginning = [](const Completion& c) {
    return std::vector(c.token_ids.begin(), c.token_ids.begin() + 2);
  };
  for (const Completion& c : texts) ++beginnings[beginning(c)];
  std::string best;
  int most = 0;
  for (const Completion& c : texts) {
    const auto again = engine.Tokenize(c.text, false, false);
    const int n = beginnings[beginning(c)];
    if (n <= most || again.size() < 7 ||
        !std::equal(again.begin() + 1, again.begin() + 7, c.token_ids.begin()))
      continue;
    best = c.text, most = n;
  }
  return best;
}

const Facts& Known() {
  static const Facts facts = [] {
    Facts f;
    const auto engine = OpenMatrix({});
    Request r = InLetters();
    r.prompt_tokens = FirstPrompt();
    r.max_new_tokens = 8;
    f.prompt = r.prompt_tokens;
    const auto first = GeneratedTogether(*engine, {r})[0].token_ids;
    f.prompt.insert(f.prompt.end(), first.begin(), first.end());
    r.prompt_tokens = f.prompt;
    r.max_new_tokens = 16;
    std::vector<Request> requests(400, r);
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i].id = 7'000'000 + i;
    const auto texts = GeneratedTogether(*engine, requests);
    std::map<std::int32_t, int> counts;
    std::map<std::int32_t, std::map<std::int32_t, int>> pairs;
    for (const Completion& c : texts)
      for (std::size_t i = 0; i < c.token_ids.size(); ++i) {
        ++counts[c.token_ids[i]];
        if (i > 0) ++pairs[c.token_ids[i - 1]][c.token_ids[i]];
      }
    f.common = ByCount(counts);
    for (const auto& [token, next] : pairs) f.followers[token] = ByCount(next);
    f.prediction = LikelyText(*engine, texts);
    return f;
  }();
  return facts;
}

// Drafts what followed the last token in other texts, with far too high probabilities.
class Fond final : public Drafter {
 public:
  explicit Fond(bool distributions)
      : distributions_(distributions), followers_(Known().followers) {}
  std::string_view name() const override { return distributions_ ? "own" : "own-certain"; }
  bool ReportsDistributions() const override { return distributions_; }
  void Propose(int, DraftProposal& proposal) override {
    while (proposal.left() > 0) {
      const auto known = followers_.find(proposal.text().back());
      const auto& next = known == followers_.end() ? Known().common : known->second;
      if (!distributions_) {
        proposal.Push(next[0]);
        continue;
      }
      std::vector<float> distribution(kMatrixVocabulary);
      constexpr std::array kDistribution = {0.1f, 0.8f, 0.1f};
      for (std::size_t i = 0; i < kDistribution.size(); ++i)
        distribution[Of(next, i)] += kDistribution[i];
      if (proposal.Draw(distribution) < 0) break;
    }
  }

 private:
  static std::size_t Of(const std::vector<std::int32_t>& next, std::size_t i) {
    return static_cast<std::size_t>(next[std::min(i, next.size() - 1)]);
  }
  bool distributions_;
  std::map<std::int32_t, std::vector<std::int32_t>> followers_;
};

// Depends on the text: drafts that are verified must be part of it.
void DislikeByLastToken(std::span<const std::int32_t> text, std::span<float> logits) {
  for (std::size_t i = 0; i < logits.size(); ++i)
    if ((static_cast<std::size_t>(text.back()) + i) % 2 == 1) logits[i] -= 2;
}

std::vector<MatrixSetting> MakeSettings() {
  using Shows = MatrixSetting::Shows;
  const auto none = [](Request&) {};
  const auto end_is_likely = [](Request& r) {
    r.ignore_eos = false;
    r.sampling.logit_bias[kEnd] = 1;
  };
  const auto can_stop = [](Request& r) { r.stop_token_ids = {Known().common[0]}; };
  const auto dry = [](Request& r) { r.sampling.dry = {.multiplier = 0.5f, .allowed_length = 1}; };
  const auto repetition = [](Request& r) { r.sampling.repetition_penalty = 1.5f; };
  return {
      {"temperature 0", none, [](Request& r) { r.sampling.temperature = 0; }},
      {"temperature 0.7", [](Request& r) { r.sampling.temperature = 1; },
       [](Request& r) { r.sampling.temperature = 0.7f; }},
      {"temperature 1.5", none, [](Request& r) { r.sampling.temperature = 1.5f; }},
      {"top_k", none, [](Request& r) { r.sampling.top_k = 5; }},
      {"top_p", none, [](Request& r) { r.sampling.top_p = 0.7f; }},
      {"min_p", none, [](Request& r) { r.sampling.min_p = 0.1f; }},
      {"typical_p", none, [](Request& r) { r.sampling.typical_p = 0.5f; }},
      {"eta", none, [](Request& r) { r.sampling.eta = 0.3f; }},
      {"repetition_penalty", none, repetition},
      {"repetition_window", repetition, [](Request& r) { r.sampling.repetition_window = 6; }},
      {"frequency_penalty", none, [](Request& r) { r.sampling.frequency_penalty = 2; }},
      {"presence_penalty", none, [](Request& r) { r.sampling.presence_penalty = 2; }},
      {"dry", none, dry},
      {"dry.base", dry, [](Request& r) { r.sampling.dry.base = 9; }},
      {"dry.allowed_length", dry, [](Request& r) { r.sampling.dry.allowed_length = 2; }},
      {"dry.window", dry, [](Request& r) { r.sampling.dry.window = 4; }},
      {"dry.breakers", dry, [](Request& r) { r.sampling.dry.breakers = Known().common; }},
      {"logit_bias", none,
       [](Request& r) {
         r.sampling.logit_bias[Known().common[1]] = 2;
         r.sampling.logit_bias[Known().common[0]] = -1;
       }},
      {"logit_bias, a ban", none,
       [](Request& r) { r.sampling.logit_bias[Known().common[0]] = kNever; }},
      {"min_new_tokens", can_stop, [](Request& r) { r.min_new_tokens = 3; }},
      {"max_new_tokens", none, [](Request& r) { r.max_new_tokens -= 2; }},
      {"stop", none, [](Request& r) { r.stop = {Known().prediction.substr(6, 2)}; }},
      {"stop_token_ids", none, can_stop},
      {"ignore_eos", end_is_likely, [](Request& r) { r.ignore_eos = true; }},
      {"end tokens", [](Request& r) { r.sampling.logit_bias[kEnd] = 1; }, end_is_likely},
      {"grammar", none, [](Request& r) { r.sampling.grammar = "root ::= ([a-n] [o-z] | \" \")*"; }},
      {"processors", none, [](Request& r) { r.sampling.processors.push_back(DislikeByLastToken); }},
      {"logprobs", none, [](Request& r) { r.logprobs = 5; }, Shows::kLogprobs},
      {"seed", none, [](Request& r) { r.seed = 99; }},
      {"id", none, [](Request& r) { r.id += 50'000'000; }},
      {"filters together", none,
       [](Request& r) {
         r.sampling.temperature = 1.2f, r.sampling.top_k = 40, r.sampling.top_p = 0.9f;
         r.sampling.typical_p = 0.9f, r.sampling.min_p = 0.02f, r.sampling.eta = 0.01f;
       }},
      {"edits together", none,
       [repetition, dry](Request& r) {
         repetition(r), dry(r);
         r.sampling.frequency_penalty = 0.4f, r.sampling.presence_penalty = 0.4f;
         r.sampling.logit_bias[Known().common[0]] = 1;
         r.sampling.processors.push_back(DislikeByLastToken);
         r.sampling.top_p = 0.9f;
       }},
      {"grammar, top_k and ends", end_is_likely,
       [](Request& r) {
         r.sampling.grammar = "root ::= [a-z ]+";
         r.sampling.top_k = 8;
         r.min_new_tokens = 2;
       }},
      {"draft_sampling", none,
       [](Request& r) {
         r.speculative.draft_sampling = r.sampling;
         r.speculative.draft_sampling->temperature = 1.3f;
       },
       Shows::kDrafts},
      {"draft_p_min", none, [](Request& r) { r.speculative.draft_p_min = 0.4f; }, Shows::kDrafts},
      {"num_speculative_tokens", none, [](Request& r) { r.speculative.num_speculative_tokens = 2; },
       Shows::kDrafts},
      {"temperature 1", none, [](Request& r) { r.sampling.temperature = 1; }},
  };
}

}  // namespace

const std::vector<MatrixSetting>& MatrixSettings() {
  static const std::vector<MatrixSetting> settings = MakeSettings();
  return settings;
}

const std::vector<MatrixDrafter>& MatrixDrafters() {
  static const std::vector<MatrixDrafter> drafters = [] {
    std::vector<MatrixDrafter> made;
    const auto add = [&made](bool distributions) {
      for (const DrafterInfo* const row : AllDrafters())
        if (row->reports_q == distributions && row->drafts_from != kGrammar)
          made.push_back({std::string(row->name), distributions});
    };
    add(true), made.push_back({"own", true});
    add(false), made.push_back({"own-certain", false});
    made.insert(made.end(), {{"portfolio", false}, {"all", false}});
    return made;
  }();
  return drafters;
}

const std::vector<VerifyStrategy>& LosslessStrategies() {
  static const std::vector<VerifyStrategy> strategies = [] {
    std::vector<VerifyStrategy> made = {VerifyStrategy::kAuto};
    for (const std::string_view name : NamesWith(AllStrategies(), &StrategyInfo::lossless, true))
      made.push_back(*VerifyStrategy::Named(name));
    return made;
  }();
  return strategies;
}

bool ReadsDistributions(VerifyStrategy strategy) {
  const StrategyInfo* const row = FindStrategy(Name(strategy));
  return row != nullptr && row->needs_q;
}

Result<std::unique_ptr<Engine>> TryOpenMatrix(const MatrixEngine& of) {
  EngineOptions options;
  options.model = TinyFiles().at("none");
  options.speculative.method = of.drafter == "all" ? "portfolio" : of.drafter;
  options.speculative.strategy = of.strategy;
  options.speculative.controller = of.controller;
  options.speculative.num_speculative_tokens = 3;
  options.speculative.skip_sample_adjustment = !of.adjusts;
  options.max_sequences = of.max_sequences;
  options.threads = 1;
  const auto file = TinyFiles().find(of.drafter == "all" ? "standalone" : of.drafter);
  if (of.drafter != "none" && file != TinyFiles().end()) options.draft_model = file->second;
  if (of.drafter.starts_with("own")) options.drafter = std::make_shared<Fond>(of.drafter == "own");
  return Engine::Open(options);
}

std::unique_ptr<Engine> OpenMatrix(const MatrixEngine& of) {
  return Got(TryOpenMatrix(of));
}

Request MatrixRequest(int n) {
  Request r = InLetters();
  r.prompt_tokens = Known().prompt;
  r.max_new_tokens = n;
  r.prediction = Known().prediction;
  return r;
}

std::vector<Request> MatrixRequests(const MatrixSetting& setting, int n_tokens,
                                    std::uint64_t first_id, int n) {
  std::vector<Request> requests(static_cast<std::size_t>(n), MatrixRequest(n_tokens));
  for (Request& r : requests) {
    r.id = first_id++;
    setting.given(r), setting.set(r);
  }
  return requests;
}

}  // namespace foretoken
