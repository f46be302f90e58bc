// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of the prompt's own tokens: they are those of Engine::Score, bit for bit,
// whatever runs beside, and they change no text.
#include <gtest/gtest.h>

#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

Request AskAbout(int n_prompt, int n_new, int variant = 0) {
  Request r = Ask(n_new, 0.8f, 5);
  r.prompt_tokens = RecurringTokens(n_prompt, variant);
  r.prompt_logprobs = 2;
  return r;
}

void ExpectScores(const Completion& c, const std::vector<float>& want) {
  ASSERT_EQ(c.prompt_logprobs.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(c.prompt_logprobs[i].logprob, want[i]) << i;
    ASSERT_EQ(c.prompt_logprobs[i].top.size(), 2u);
    EXPECT_GE(c.prompt_logprobs[i].top[0].second, c.prompt_logprobs[i].logprob);
  }
}

std::vector<float> Scores(const Request& r) {
  return *OpenEngine(PairOptions())->Score(r.prompt_tokens);
}

TEST(PromptLogprobs, AreThoseOfScoreAtEveryLength) {
  for (const int rows : {4, 256}) {
    EngineOptions options = PairOptions();
    options.prefill_rows = rows;
    const auto engine = OpenEngine(options);
    for (const int n : {1, 2, 3, 33, 64, 65, 66, 67, 90}) {
      const Request r = AskAbout(n, 4);
      const Completion c = Generated(*engine, r);
      ExpectScores(c, Scores(r));
      EXPECT_EQ(c.timings.cached_prompt_tokens, 0);
      EXPECT_EQ(c.token_ids.size(), 4u);
    }
  }
}

TEST(PromptLogprobs, NeedNoNewToken) {
  const auto engine = OpenEngine(PairOptions());
  for (const int n : {1, 2, 66, 95}) {
    const Request r = AskAbout(n, 0);
    const Completion c = Generated(*engine, r);
    ExpectScores(c, Scores(r));
    EXPECT_TRUE(c.token_ids.empty());
    EXPECT_EQ(c.finish_reason, FinishReason::kLength);
  }
  Request unasked = AskAbout(66, 0);
  unasked.prompt_logprobs = -1;
  EXPECT_TRUE(Generated(*engine, unasked).prompt_logprobs.empty());
}

TEST(PromptLogprobs, ChangeNoText) {
  const auto engine = OpenEngine(PairOptions());
  for (const VerifyStrategy strategy : {VerifyStrategy::kResidual, VerifyStrategy::kSampleMatch}) {
    Request r = AskAbout(70, 20);
    r.speculative.strategy = strategy;
    const Completion with = Generated(*engine, r);
    r.prompt_logprobs = -1;
    const Completion without = Generated(*engine, r);
    EXPECT_EQ(with.token_ids, without.token_ids);
    EXPECT_GT(without.timings.cached_prompt_tokens, 0);  // there was something to pass by
  }
}

// With other requests that decode, prefill, share prefixes, and cause preemptions.
TEST(PromptLogprobs, InCompanyAreThoseOfARequestAlone) {
  EngineOptions options = PairOptions(4);
  options.cache_tokens = 160;
  options.prefill_rows = 4;  // prompts are long under way
  const auto engine = OpenEngine(options);
  std::vector<Request> requests;
  for (int i = 0; i < 12; ++i) {
    Request r = AskAbout(30 + 5 * (i % 5), i % 4 == 3 ? 0 : 46 - 7 * (i % 4), i % 3);
    r.seed = static_cast<std::uint64_t>(i);
    if (i % 4 == 1) r.prompt_logprobs = -1;
    requests.push_back(r);
  }
  const auto completions = GeneratedBesideOthers(*engine, requests, 3);
  EXPECT_GT(engine->load().preemptions, 1) << "no blocks were taken: that was not tested";
  const auto alone = OpenEngine(PairOptions());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Completion& c = completions[i];
    EXPECT_EQ(c.token_ids, Generated(*alone, requests[i]).token_ids) << i;
    if (requests[i].prompt_logprobs >= 0)
      ExpectScores(c, Scores(requests[i]));
    else
      EXPECT_TRUE(c.prompt_logprobs.empty());
  }
}

TEST(PromptLogprobs, ComeWithTheFirstTokens) {
  const auto engine = OpenEngine(PairOptions());
  const Request r = AskAbout(80, 9);
  int rounds = 0, with = 0;
  const auto c = engine->Generate(r, [&](const RoundEvent& round) {
    if (round.events.empty()) {
      EXPECT_TRUE(round.prompt_logprobs.empty());
      return true;
    }
    EXPECT_EQ(round.prompt_logprobs.size(), rounds == 0 ? 79u : 0u);
    with += !round.prompt_logprobs.empty();
    ++rounds;
    return true;
  });
  ASSERT_TRUE(c);
  EXPECT_GT(rounds, 1);
  EXPECT_EQ(with, 1);
}

TEST(PromptLogprobs, OutOfRangeAreRefused) {
  const auto engine = OpenEngine(PairOptions());
  Request r = AskAbout(5, 1);
  r.prompt_logprobs = 65;
  EXPECT_EQ(MessageOf(engine->Generate(r)), "prompt_logprobs: 65 is out of range; use 0 to 64");
}

}  // namespace
}  // namespace foretoken
