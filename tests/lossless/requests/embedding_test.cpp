// SPDX-License-Identifier: Apache-2.0
// Embeddings of prompts: those of all poolings come from the same hidden states, and they are the same
// to the bit whatever runs beside them and however the prompt was divided into passes.
#include <gtest/gtest.h>

#include "lossless/parts_testing.h"

namespace foretoken {
namespace {

constexpr Pooling kPoolings[] = {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast};

Request Embed(int n, Pooling pooling, int variant = 0) {
  Request r;
  r.prompt_tokens = RecurringTokens(n, variant);
  r.max_new_tokens = 0;
  r.embedding = pooling;
  return r;
}

std::vector<float> EmbeddingOf(Engine& engine, const Request& r) {
  const Completion c = Generated(engine, r);
  EXPECT_TRUE(c.token_ids.empty());
  EXPECT_EQ(c.finish_reason, FinishReason::kLength);
  return c.embedding;
}

TEST(Embedding, OfEachPoolingIsMadeOfTheStatesOfTokens) {
  const auto engine = OpenEngine(PairOptions());
  const auto size = static_cast<std::size_t>(engine->summary().target.embedding_size);
  ASSERT_GT(size, 0u);
  for (const int n : {1, 2, 33, 66, 95}) {
    const auto states = EmbeddingOf(*engine, Embed(n, Pooling::kNone));
    ASSERT_EQ(states.size(), size * static_cast<std::size_t>(n));
    std::vector<double> sum(size);
    for (std::size_t i = 0; i < states.size(); ++i) sum[i % size] += states[i];
    std::vector<float> mean;
    for (const double x : sum) mean.push_back(static_cast<float>(x / n));
    EXPECT_EQ(EmbeddingOf(*engine, Embed(n, Pooling::kMean)), mean);
    EXPECT_EQ(EmbeddingOf(*engine, Embed(n, Pooling::kFirst)),
              std::vector<float>(states.begin(), states.begin() + static_cast<long>(size)));
    EXPECT_EQ(EmbeddingOf(*engine, Embed(n, Pooling::kLast)),
              std::vector<float>(states.end() - static_cast<long>(size), states.end()));
  }
}

TEST(Embedding, DoesNotDependOnPassesThreadsAndCaches) {
  for (const Pooling pooling : kPoolings) {
    std::vector<float> want;
    for (const int rows : {256, 4, 33}) {
      EngineOptions options = PairOptions();
      options.prefill_rows = rows;
      options.threads = rows == 33 ? 3 : 1;
      const auto engine = OpenEngine(options);
      Request r = Embed(90, pooling);
      if (want.empty()) want = EmbeddingOf(*engine, r);
      EXPECT_EQ(EmbeddingOf(*engine, r), want) << Name(pooling) << ' ' << rows;
      const Completion again = Generated(*engine, r);
      EXPECT_EQ(again.embedding, want);
      EXPECT_EQ(again.timings.cached_prompt_tokens > 0, pooling == Pooling::kLast);
    }
  }
}

// With other requests that decode, prefill, share prefixes, and cause preemptions.
TEST(Embedding, InCompanyIsThatOfARequestAlone) {
  EngineOptions options = PairOptions(4);
  options.cache_tokens = 160;
  options.prefill_rows = 4;  // prompts are long under way
  const auto engine = OpenEngine(options);
  std::vector<Request> requests;
  for (int i = 0; i < 32; ++i) {
    Request r = Embed(30 + 5 * (i % 5), kPoolings[i % 4], i % 3);
    if (i % 3 == 1) r.embedding = {}, r.max_new_tokens = 46, r.seed = 1;
    requests.push_back(r);
  }
  const auto completions = GeneratedBesideOthers(*engine, requests, 3);
  EXPECT_GT(engine->load().preemptions, 0) << "no blocks were taken: that was not tested";
  const auto alone = OpenEngine(PairOptions());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Completion &c = completions[i], want = Generated(*alone, requests[i]);
    EXPECT_EQ(c.token_ids, want.token_ids) << i;
    EXPECT_EQ(c.embedding, want.embedding) << i;
    EXPECT_EQ(c.embedding.empty(), !requests[i].embedding) << i;
  }
}

// Heads read the normed states as features; a pass may have both.
TEST(Embedding, IsOfTheStatesThatHeadsRead) {
  const auto plain = OpenEngine(PairOptions());
  const auto headed = OpenEngine(HeadOptions({}));
  ASSERT_TRUE(headed->summary().hidden_states.normed);
  for (const Pooling pooling : kPoolings)
    EXPECT_EQ(EmbeddingOf(*plain, Embed(50, pooling)), EmbeddingOf(*headed, Embed(50, pooling)));
  const auto scorer = Got(Scorer::Create(PairOptions(), {.normed = true}));
  const Request r = Embed(50, Pooling::kNone);
  ASSERT_TRUE(scorer->Score(r.prompt_tokens));
  const auto states = scorer->hidden_states();
  EXPECT_EQ(EmbeddingOf(*plain, r), std::vector<float>(states.begin(), states.end()));
}

TEST(Embedding, FillsTheContextAndNoMore) {
  EngineOptions options = PairOptions();
  options.context_size = 96;
  const auto engine = OpenEngine(options);
  EXPECT_FALSE(EmbeddingOf(*engine, Embed(96, Pooling::kMean)).empty());
  const auto c = engine->Generate(Embed(97, Pooling::kMean));
  ASSERT_FALSE(c);
  EXPECT_EQ(c.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(c.error().field, "prompt");
}

TEST(Embedding, ComesAlone) {
  const auto engine = OpenEngine(PairOptions());
  Request with_text = Embed(5, Pooling::kMean), with_logprobs = with_text, ranked = with_text;
  with_text.max_new_tokens = 1;
  with_logprobs.prompt_logprobs = 0;
  ranked.embedding = Pooling::kRank;
  for (const Request& r : {with_text, with_logprobs, ranked}) {
    const auto c = engine->Generate(r);
    ASSERT_FALSE(c);
    EXPECT_EQ(c.error().field, "embedding");
  }
  EXPECT_TRUE(Generated(*engine, Ask(3, 0.0f, 1)).embedding.empty());
}

TEST(Embedding, OfACancelledRequestIsEmpty) {
  EngineOptions options = PairOptions();
  options.prefill_rows = 4;
  const auto engine = OpenEngine(options);
  const Completion c =
      Got(engine->Generate(Embed(90, Pooling::kMean), [](const RoundEvent&) { return false; }));
  EXPECT_EQ(c.finish_reason, FinishReason::kCancelled);
  EXPECT_TRUE(c.embedding.empty());
}

}  // namespace
}  // namespace foretoken
