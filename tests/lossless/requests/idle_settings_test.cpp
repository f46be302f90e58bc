// SPDX-License-Identifier: Apache-2.0
// Every setting of speculation with every method, strategy, controller and temperature: it is
// refused, or it changes something, or its notice says why it does not. Notices are true: a setting
// that they call idle changes nothing.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "foretoken/speculative_config.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

struct Combination {
  std::string method, controller;
  VerifyStrategy strategy = VerifyStrategy::kAuto;
  float temperature = 0;
  std::string name() const {
    return method + ", " + controller + ", " + Name(strategy) + ", temperature " +
           (temperature > 0 ? "0.8" : "0");
  }
};

std::vector<Combination> Combinations() {
  std::vector<Combination> all;
  for (const float t : {0.0f, 0.8f}) {
    for (const char* method : {"none", "standalone", "ngram"})
      for (const VerifyStrategy strategy : EveryStrategy())
        all.push_back({method, "fixed", strategy, t});
    for (const char* method : {"suffix", "prediction"})
      all.push_back({method, "fixed", VerifyStrategy::kAuto, t});
    for (const char* method : {"none", "standalone", "ngram"})
      for (const char* controller : {"ewma", "batch-size", "heuristic"})
        all.push_back({method, controller, VerifyStrategy::kAuto, t});
  }
  return all;
}

constexpr const char* kText = "a b c d b c a d c a b b d a c b c d a a b c";

// Texts of few different tokens, so that they recur, but none recurs for ever.
const SamplingParameters& Sampling() {
  static const SamplingParameters sampling = [] {
    SamplingParameters made;
    const auto engine = OpenEngine(PairOptions());
    for (const std::int32_t id : engine->Tokenize(kText, false, false)) made.logit_bias[id] = 40;
    made.frequency_penalty = 0.4f;
    return made;
  }();
  return sampling;
}

// The text of plain decoding.
const std::string& PlainText(float temperature) {
  static std::map<float, std::string> texts;
  std::string& text = texts[temperature];
  if (!text.empty()) return text;
  Request r = Ask(40, temperature, 3, 0);
  r.prompt = kText;
  r.sampling = Sampling();
  r.sampling.temperature = temperature;
  return text = Generated(*OpenEngine(PairOptions()), r).text;
}

SpeculativeOptions CombinedOptions(const Combination& of) {
  SpeculativeOptions options;
  options.method = of.method;
  options.controller = of.controller;
  options.strategy = of.strategy;
  options.num_speculative_tokens = 8;
  options.adaptive_lookahead = {
      .initial = 2, .min = 1, .max = 8, .alpha = 0.2f, .cooldown_steps = 0};
  if (of.controller == "batch-size") options.num_speculative_tokens_per_batch_size = {{1, 1, 5}};
  return options;
}

Request RequestOf(const Combination& of, std::uint64_t id) {
  Request r = Ask(40, of.temperature, 3);
  r.id = id;
  r.prompt = kText;
  r.speculative = {};
  r.sampling = Sampling();
  r.sampling.temperature = of.temperature;
  if (of.method == "prediction") r.prediction = PlainText(of.temperature);
  return r;
}

// The visible results of a run: texts, and each round's lengths. Empty if the options are refused.
using Shown = std::vector<
    std::tuple<std::vector<std::int32_t>, std::vector<std::int64_t>, std::vector<std::int64_t>>>;
Shown Observe(const Combination& of, const SpeculativeOptions& options,
              SpeculativeUse* use = nullptr) {
  EngineOptions engine_options = OptionsOfMethod(options.method);
  engine_options.speculative = options;
  auto engine = Engine::Open(std::move(engine_options));
  if (!engine) return {};
  if (use != nullptr) *use = (*engine)->UseFor(RequestOf(of, 0));
  Shown shown;
  for (const std::uint64_t id : {0, 0, 1}) {  // the second knows the first one's text
    const auto c = (*engine)->Generate(RequestOf(of, id));
    if (!c) return {};
    shown.emplace_back(c->token_ids, c->speculation.k_histogram,
                       c->speculation.accepted_per_position);
  }
  return shown;
}

// Values that make a difference wherever the setting is read.
const std::map<std::string, std::string>& Values() {
  static const std::map<std::string, std::string> values = [] {
    std::istringstream words(
        "num_speculative_tokens 2 min_speculative_tokens 8 lookahead_initial 1 lookahead_min 2 "
        "lookahead_max 2 lookahead_alpha 1 lookahead_cooldown_steps 9 "
        "num_speculative_tokens_per_batch_size 1:2 draft_p_min 0.5 draft_vocabulary 20 "
        "synthetic_acceptance_rate 0.6 acceptance_threshold 0.5 skip_sample_adjustment on "
        "typical_epsilon 0 typical_delta 0 relaxed_top_n 1 relaxed_delta 0 ngram_max 1 "
        "ngram_min 2 ngram_storage single-level ngram_filler_top_k 8 ngram_keep on "
        "suffix_max_tokens 0");
    std::map<std::string, std::string> made;
    for (std::string name, value; words >> name >> value;) made[name] = value;
    made["ngram_corpus"] = fixtures::TemporaryFolder() + "/corpus.txt";
    std::ofstream(made["ngram_corpus"]) << PlainText(0) << PlainText(0.8f);
    return made;
  }();
  return values;
}

TEST(IdleSettings, EachIsRefusedOrHasAnEffectOrANotice) {
  std::map<std::string_view, int> refused, effective, idle, changed;
  for (const Combination& of : Combinations()) {
    const SpeculativeOptions base = CombinedOptions(of);
    const Shown want = Observe(of, base);
    if (want.empty()) continue;  // the combination itself is refused
    for (const auto& [name, value] : Values()) {
      const SpeculativeKey* const key = FindSpeculativeKey(name);
      SpeculativeOptions options = base;
      ASSERT_TRUE(key->set(options, value)) << name;
      SpeculativeUse use;
      const Shown got = Observe(of, options, &use);
      const std::string where = std::string(name) + " with " + of.name();
      if (got.empty()) {
        ++refused[name];
        continue;
      }
      const std::string why = key->idle(options, use);
      ++(why.empty() ? effective : idle)[name];
      const bool bound = name == "lookahead_min" || name == "lookahead_max";
      changed[name] += got != want;
      if (why.empty() && !bound) {  // a bound may not bind
        EXPECT_NE(got, want) << where << ": no effect, and no notice";
      } else if (!why.empty()) {
        EXPECT_EQ(got, want) << where << ": an effect, and a notice: " << why;
      }
    }
  }
  for (const auto& [name, value] : Values()) {
    EXPECT_GT(effective[name], 0) << name;
    EXPECT_GT(changed[name], 0) << name;
    EXPECT_GT(idle[name] + refused[name], 0) << name;
  }
}

TEST(IdleSettings, NoticesSayWhoReadsThem) {
  const auto why = [](const Combination& of, std::string_view name, const std::string& value,
                      bool several = true) {
    SpeculativeOptions options = CombinedOptions(of);
    EXPECT_TRUE(SetSpeculativeOption(options, name, value)) << name;
    SpeculativeUse use;
    EXPECT_FALSE(Observe(of, options, &use).empty()) << name;
    use.several_requests = several;
    return FindSpeculativeKey(name)->idle(options, use);
  };
  constexpr VerifyStrategy kAuto = VerifyStrategy::kAuto;
  const Combination ngram{"ngram", "fixed", kAuto, 0.8f}, model{"standalone", "fixed", kAuto, 0.8f},
      greedy{"standalone", "fixed", kAuto, 0}, none{"none", "fixed", kAuto, 0.8f};
  EXPECT_EQ(why(model, "ngram_max", "5"), "only ngram reads it");
  EXPECT_EQ(why(ngram, "ngram_max", "5"), "");
  EXPECT_EQ(why(ngram, "lookahead_max", "5"), "only lookahead ewma reads it");
  EXPECT_EQ(why(ngram, "typical_epsilon", "0"), "only typical-acceptance reads it");
  EXPECT_EQ(why(greedy, "verify", "residual"), "at temperature 0 every strategy is greedy");
  EXPECT_EQ(why(greedy, "verify", "greedy"), "");
  EXPECT_EQ(
      why({"standalone", "fixed", VerifyStrategy::kTypicalAcceptance, 0}, "typical_delta", "0"),
      "at temperature 0 every strategy is greedy");
  EXPECT_EQ(why(none, "num_speculative_tokens", "3"), "nothing drafts");
  EXPECT_EQ(why(none, "lookahead", "heuristic"), "nothing drafts");
  EXPECT_EQ(why(ngram, "method", "ngram,prediction"),
            "prediction drafts from a prediction, and there is none");
  EXPECT_EQ(why(ngram, "method", "grammar"), "grammar drafts from a grammar, and there is none");
  EXPECT_EQ(why(ngram, "draft_p_min", "0.3"), "ngram knows no probabilities");
  EXPECT_EQ(why(ngram, "ngram_keep", "on"), "");
  EXPECT_EQ(why(ngram, "ngram_keep", "on", false), "there is one request");
  EXPECT_EQ(why(ngram, "adaptive_speculative_widths", "3"),
            "only lookahead cost-model, by-text read it");
  EXPECT_EQ(why(ngram, "num_speculative_tokens_mixed_batch", "1"), "one request runs at a time");
  EXPECT_EQ(why({"standalone", "fixed", VerifyStrategy::kResidual, 0.8f},
                "num_speculative_tokens_mixed_batch", "1"),
            "with residual a request's drafts depend on its own text alone");
  EXPECT_EQ(why(model, "synthetic_acceptance_each", "on"),
            "only synthetic_acceptance_rate reads it");
  EXPECT_EQ(why(none, "synthetic_acceptance_each", "on"), "nothing drafts");
  EXPECT_EQ(why(ngram, "profile", ""), "only lookahead cost-model, by-text read it");
}

TEST(IdleSettings, RequestsAreToldOfTheirs) {
  const auto engine = OpenEngine(PairOptions());
  using Lines = std::vector<std::string>;
  Request r = Ask(6, 0.8f, 1);
  EXPECT_EQ(Generated(*engine, r).notices, Lines());
  r.prediction = "upon a time";
  EXPECT_EQ(Generated(*engine, r).notices, Lines{"prediction: only prediction reads it"});
  r.speculative.method = "ngram,prediction";
  EXPECT_EQ(Generated(*engine, r).notices, Lines());
  r.prediction.clear();
  EXPECT_EQ(Generated(*engine, r).notices,
            Lines{"speculative_method: prediction drafts from a prediction, and there is none"});
  r.speculative.method = "ngram";
  r.speculative.draft_p_min = 0.5f;
  EXPECT_EQ(Generated(*engine, r).notices, Lines{"draft_p_min: ngram knows no probabilities"});
  Request greedy = Ask(6, 0, 1);
  greedy.speculative.strategy = VerifyStrategy::kResidual;
  EXPECT_EQ(Generated(*engine, greedy).notices,
            Lines{"rejection_sampling_strategy: at temperature 0 every strategy is greedy"});
  greedy.speculative.enabled = false;
  greedy.speculative.min_speculative_tokens = 1;
  greedy.speculative.strategy = VerifyStrategy::kSampleMatch;
  EXPECT_EQ(
      Generated(*engine, greedy).notices,
      (Lines{"rejection_sampling_strategy: nothing drafts",
             "num_speculative_tokens: nothing drafts", "min_speculative_tokens: nothing drafts"}));
}

}  // namespace
}  // namespace foretoken
