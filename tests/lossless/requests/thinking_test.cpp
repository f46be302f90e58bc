// SPDX-License-Identifier: Apache-2.0
// Relaxed acceptance in parts of a text that think: exact outside of them, and the same alone as
// beside other requests.
#include <gtest/gtest.h>

#include <algorithm>

#include "foretoken/speculative_config.h"
#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

constexpr VerifyStrategy kSampleMatch = VerifyStrategy::kSampleMatch;

// A text of a few tokens, of which "a" begins a part that thinks and "b" ends it.
struct Letters {
  std::vector<std::int32_t> all;
  std::int32_t begin = 0, end = 0;
};
const Letters& TheLetters() {
  static const Letters letters = [] {
    const auto engine = OpenEngine(PairOptions());
    Letters made;
    made.all = engine->Tokenize("a b c d c a b", false, false);
    made.begin = engine->Tokenize("a", false, false).at(0);
    made.end = engine->Tokenize("b", false, false).at(0);
    return made;
  }();
  return letters;
}

// begin, end: the marks. Empty: no relaxed acceptance.
EngineOptions Options(const std::string& begin = "a", const std::string& end = "b") {
  EngineOptions options = PairOptions();
  options.speculative.use_relaxed_acceptance_for_thinking = !begin.empty();
  options.speculative.thinking_begin = begin;
  options.speculative.thinking_end = end;
  return options;
}

Request AskLetters(std::uint64_t seed, VerifyStrategy strategy = kSampleMatch) {
  Request r = Ask(60, 0.9f, seed, 5);
  for (const std::int32_t id : TheLetters().all) r.sampling.logit_bias[id] = 40;
  r.prompt.clear();
  r.prompt_tokens = {1, TheLetters().all[2], TheLetters().all[3]};
  r.speculative.strategy = strategy;
  r.logprobs = 2;
  return r;
}

bool Thinks(std::span<const std::int32_t> text) {
  bool thinks = false;
  for (const std::int32_t id : text)
    thinks = id == TheLetters().begin || (thinks && id != TheLetters().end);
  return thinks;
}

// What plain decoding gives behind each prefix of a text.
TEST(RelaxedThinking, IsExactOutsideOfThePartsThatThink) {
  const auto engine = OpenEngine(Options()), plain = OpenEngine(PairOptions());
  int outside = 0, behind = 0, inside = 0, changed = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Request asked = AskLetters(seed);
    const Completion c = Generated(*engine, asked);
    EXPECT_FALSE(c.lossless);
    EXPECT_EQ(c.strategy, "sample-match");
    EXPECT_GT(c.speculation.accepted_relaxed, 0);
    EXPECT_LE(c.speculation.accepted_relaxed, c.speculation.accepted);
    Request next = asked;
    next.max_new_tokens = 1;
    next.speculative = {.enabled = false};
    bool thought = false;
    for (std::size_t i = 0; i < c.token_ids.size(); ++i) {
      const Completion want = Generated(*plain, next);
      const bool same = want.token_ids.at(0) == c.token_ids[i] &&
                        want.logprobs.at(0).logprob == c.logprobs[i].logprob;
      if (Thinks(next.prompt_tokens)) {
        thought = true;
        ++inside, changed += !same;
      } else {
        EXPECT_TRUE(same) << "seed " << seed << ", token " << i;
        ++outside, behind += thought;
      }
      next.prompt_tokens.push_back(c.token_ids[i]);
    }
  }
  EXPECT_GT(outside, 100);
  EXPECT_GT(behind, 50);  // a part that thinks had ended
  EXPECT_GT(inside, 100);
  EXPECT_GT(changed, 0);  // relaxed acceptance does something
}

TEST(RelaxedThinking, AcceptsMoreInsideAndNothingMoreElsewhere) {
  const auto engine = OpenEngine(Options("a", "</think>")), exact = OpenEngine(PairOptions()),
             strict = [] {
               EngineOptions options = Options("a", "</think>");
               options.speculative.relaxed_top_n = 1;
               options.speculative.relaxed_delta = 0;
               return OpenEngine(options);
             }();
  std::int64_t relaxed = 0, exactly = 0, best_only = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Request r = AskLetters(seed);
    r.prompt_tokens.push_back(TheLetters().begin);  // as templates do
    const auto counts = Generated(*engine, r).speculation;
    EXPECT_EQ(counts.accepted_relaxed, counts.accepted);  // all of the text thinks
    relaxed += counts.accepted;
    exactly += Generated(*exact, r).speculation.accepted;
    best_only += Generated(*strict, r).speculation.accepted;
  }
  EXPECT_GT(relaxed, exactly + exactly / 20);
  EXPECT_LT(best_only, relaxed);  // the two settings of the rule are read
}

// Whatever the strategy: drafts that do not think are verified by it alone.
TEST(RelaxedThinking, ATextThatNeverThinksIsThatOfTheStrategy) {
  const auto engine = OpenEngine(Options("<think>", "</think>")), other = OpenEngine(PairOptions());
  for (const VerifyStrategy strategy :
       {kSampleMatch, VerifyStrategy::kResidual, VerifyStrategy::kBlock,
        VerifyStrategy::kTargetProbability, VerifyStrategy::kTypicalAcceptance})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const Request r = AskLetters(seed, strategy);
      const Completion got = Generated(*engine, r), want = Generated(*other, r);
      ExpectSame(got, want, Name(strategy));
      EXPECT_EQ(got.speculation.accepted, want.speculation.accepted);
      EXPECT_EQ(got.speculation.accepted_relaxed, 0);
      if (strategy != kSampleMatch) continue;
      Request plain = r;
      plain.speculative = {.enabled = false};
      ExpectSame(got, Generated(*other, plain), "plain");
    }
}

TEST(RelaxedThinking, IsGreedyAtTemperatureZero) {
  const auto engine = OpenEngine(Options()), other = OpenEngine(PairOptions());
  Request r = AskLetters(0, VerifyStrategy::kAuto);
  r.sampling.temperature = 0;
  const Completion got = Generated(*engine, r);
  EXPECT_TRUE(got.lossless);
  EXPECT_EQ(got.strategy, "greedy");
  r.speculative = {.enabled = false};
  ExpectSame(got, Generated(*other, r), "plain");
}

// Beside other requests, and where the cache's blocks run out, whoever chooses the lengths.
TEST(RelaxedThinking, OtherRequestsAndPreemptionChangeNothing) {
  for (const char* controller : {"fixed", "cost-model"}) {
    EngineOptions options = Options();
    options.speculative.controller = controller;
    const auto alone = OpenEngine(options);
    options.max_sequences = 4;
    options.cache_tokens = 160;
    const auto together = OpenEngine(options);
    std::vector<Request> requests;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      requests.push_back(
          AskLetters(seed, seed % 4 == 3 ? VerifyStrategy::kBlock : VerifyStrategy::kAuto));
      requests.back().id = seed;
    }
    const auto got = GeneratedTogether(*together, requests),
               want = GeneratedInTurn(*alone, requests);
    EXPECT_GT(together->load().preemptions, 0);
    ExpectSame(got, want, controller);
    std::int64_t relaxed = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(got[i].speculation.accepted_relaxed, want[i].speculation.accepted_relaxed);
      relaxed += want[i].speculation.accepted_relaxed;
    }
    if (std::string_view(controller) == "fixed") EXPECT_GT(relaxed, 0);
  }
}

TEST(RelaxedThinking, SaysThatItIsNotExactAndWhereItDoesNothing) {
  const auto engine = OpenEngine(Options());
  EXPECT_FALSE(engine->summary().lossless);
  const auto& notices = engine->summary().notices;
  EXPECT_EQ(std::count(notices.begin(), notices.end(),
                       "parts that think, from 'a' to 'b', are not exact above temperature 0: "
                       "relaxed verifies their drafts"),
            1);
  const auto why = [](const SpeculativeOptions& options, const SpeculativeUse& use,
                      std::string_view key) { return FindSpeculativeKey(key)->idle(options, use); };
  constexpr const char* kSwitch = "use_relaxed_acceptance_for_thinking";
  const SpeculativeOptions options = Options().speculative;
  Request r = AskLetters(0);
  const SpeculativeUse warm = engine->UseFor(r);
  EXPECT_EQ(warm.strategies, (std::vector<std::string>{"sample-match", "relaxed"}));
  for (const char* key : {kSwitch, "thinking_begin", "relaxed_delta"})
    EXPECT_EQ(why(options, warm, key), "") << key;
  r.speculative.strategy = VerifyStrategy::kRelaxed;
  EXPECT_EQ(why(options, engine->UseFor(r), kSwitch), "relaxed verifies the whole text");
  r.sampling.temperature = 0;
  EXPECT_EQ(why(options, engine->UseFor(r), kSwitch), "at temperature 0 every strategy is greedy");
  EXPECT_EQ(why(options, engine->UseFor(r), "thinking_end"),
            "only use_relaxed_acceptance_for_thinking reads it");
}

TEST(RelaxedThinking, IsRefusedWhereTheModelDoesNotSayHowItThinks) {
  EngineOptions options = Options("", "");
  options.speculative.use_relaxed_acceptance_for_thinking = true;
  EXPECT_TRUE(Fails(Engine::Open(options), "give thinking_begin and thinking_end"));
  options.speculative.thinking_begin = "<think>";
  EXPECT_TRUE(Fails(Engine::Open(options), "give both, or none"));
}

}  // namespace
}  // namespace foretoken
