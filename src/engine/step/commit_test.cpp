// SPDX-License-Identifier: Apache-2.0
#include "engine/step/commit.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "engine/step/fake_engine_testing.h"

namespace foretoken::engine {
namespace {

struct Seen {
  std::vector<Token> ids;
  std::vector<TokenOrigin> origins;
  std::string text, drafter;
  int drafted = 0, rejected = 0;
};
OnRound Watch(Seen& seen) {
  return [&seen](const RoundEvent& round) {
    for (const TokenEvent& event : round.events) {
      seen.ids.push_back(event.id);
      seen.origins.push_back(event.origin);
      seen.text += event.text;
    }
    if (round.drafted > 0) seen.drafter = round.drafter;
    seen.drafted += round.drafted;
    seen.rejected += static_cast<int>(round.rejected.size());
    return true;
  };
}

TEST(Commit, TellsTheOwnerEachTokenAndWhereItCameFrom) {
  FakeEngine engine;
  engine.drafter->wrong_every = 3;
  Seen seen;
  const Request request = Ask(10, 7);
  const Completion completion = engine.Run(request, Watch(seen));
  EXPECT_EQ(seen.ids, engine.Expected(request));
  EXPECT_EQ(completion.token_ids, seen.ids);
  EXPECT_EQ(completion.text, seen.text);
  using enum TokenOrigin;
  const std::vector<TokenOrigin> expected = {kPlain,    kAccepted, kAccepted, kRecovered,
                                             kAccepted, kAccepted, kBonus};
  EXPECT_EQ(seen.origins, expected);
  EXPECT_EQ(seen.drafter, "fake");
  EXPECT_EQ(seen.drafted, 4 + 2);
  EXPECT_EQ(seen.rejected, 2);
  EXPECT_EQ(completion.finish_reason, FinishReason::kLength);
}

TEST(Commit, NothingBehindAnEndTokenIsCommitted) {
  FakeEngine probe;
  const std::vector<Token> text = probe.Expected(Ask(10, 6));
  FakeEngine::Options options;
  options.end_tokens = {text[3]};
  FakeEngine engine(options);
  const Completion completion = engine.Run(Ask(10, 40));
  EXPECT_EQ(completion.finish_reason, FinishReason::kStop);
  const auto end = std::find(text.begin(), text.end(), text[3]);
  EXPECT_EQ(completion.token_ids, std::vector<Token>(text.begin(), end + 1));
}

TEST(Commit, AnOwnerWhoWantsNoMoreCancels) {
  FakeEngine engine;
  const Completion completion =
      engine.Run(Ask(10, 40), [](const RoundEvent& round) { return round.drafted == 0; });
  EXPECT_EQ(completion.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(completion.token_ids.size(), 6U);  // the first, four drafts and a bonus
}

TEST(Commit, ACallbackThatThrowsEndsItsRequestAlone) {
  FakeEngine engine;
  const Request good = Ask(10, 20, 2);
  const Ticket bad = engine.Begin(
      Ask(10, 20, 1), [](const RoundEvent&) -> bool { throw std::runtime_error("no thanks"); });
  const Ticket other = engine.Begin(good);
  while (engine.Step()) continue;
  const Completion ended = *engine.admission->Take(bad);
  ASSERT_TRUE(ended.error);
  EXPECT_EQ(ended.finish_reason, FinishReason::kError);
  EXPECT_NE(ended.error->message.find("no thanks"), std::string::npos);
  EXPECT_EQ(engine.admission->Take(other)->token_ids, engine.Expected(good));
}

TEST(Commit, MemoryThatRunsOutEndsItsRequestAlone) {
  FakeEngine engine;
  const Request good = Ask(10, 20, 2);
  const Ticket bad =
      engine.Begin(Ask(10, 20, 1), [](const RoundEvent&) -> bool { throw std::bad_alloc(); });
  const Ticket other = engine.Begin(good);
  while (engine.Step()) continue;
  EXPECT_EQ(engine.admission->Take(bad)->error->code, ErrorCode::kNoMemory);
  EXPECT_EQ(engine.admission->Take(other)->token_ids, engine.Expected(good));
}

TEST(Commit, LogitsThatAreNotFiniteNameTheFile) {
  FakeEngine::Options options;
  options.runner.not_finite_every = 1;
  FakeEngine engine(options);
  const Completion completion = engine.Run(Ask(10, 20));
  ASSERT_TRUE(completion.error);
  EXPECT_EQ(completion.error->code, ErrorCode::kInvalidFile);
  EXPECT_TRUE(completion.error->message.starts_with(
      "fake.gguf: the logits after 10 tokens of text are not finite"));
}

TEST(Commit, GivesTheLogProbabilitiesThatWereAskedFor) {
  FakeEngine engine;
  Request request = Ask(10, 6);
  request.logprobs = 2;
  request.prompt_logprobs = 1;
  int with_prompt = 0;
  const Completion completion = engine.Run(request, [&](const RoundEvent& round) {
    with_prompt += static_cast<int>(round.prompt_logprobs.size());
    for (const TokenEvent& event : round.events) EXPECT_NE(event.logprobs, nullptr);
    return true;
  });
  ASSERT_EQ(completion.logprobs.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(completion.logprobs[i].top.size(), 2U);
    EXPECT_EQ(completion.logprobs[i].top[0].first, completion.token_ids[i]);  // greedy
  }
  EXPECT_EQ(completion.prompt_logprobs.size(), 9U);
  EXPECT_EQ(with_prompt, 9);
}

TEST(Commit, PromptLogProbabilitiesNeedNoToken) {
  FakeEngine engine;
  Request request = Ask(10, 0);
  request.prompt_logprobs = 0;
  const Completion completion = engine.Run(request);
  EXPECT_EQ(completion.finish_reason, FinishReason::kLength);
  EXPECT_EQ(completion.prompt_logprobs.size(), 9U);
  EXPECT_TRUE(completion.token_ids.empty());
}

TEST(Commit, ShowsDraftersTheTargetsBestTokens) {
  FakeEngine::Options options;
  FakeEngine engine(options);
  engine.drafter->n_likely = 3;
  engine.MakeCommit(options);
  const Completion completion = engine.Run(Ask(10, 12));
  ASSERT_EQ(engine.drafter->likely.size(), 3U);
  EXPECT_NE(engine.drafter->likely[0], engine.drafter->likely[1]);
}

// The mean of all states of a prompt, of which the cache held some for another request already.
std::vector<float> MeanState(const FakeEngine& engine, std::span<const Token> prompt) {
  std::vector<double> sum(8);
  for (std::size_t n = 1; n <= prompt.size(); ++n) {
    const auto state = engine.runner.StateOf(prompt.first(n));
    for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += state[d];
  }
  std::vector<float> mean;
  for (const double x : sum)
    mean.push_back(static_cast<float>(x / static_cast<double>(prompt.size())));
  return mean;
}

TEST(Commit, AnEmbeddingIsMadeOfTheStatesOfThePrompt) {
  FakeEngine::Options options;
  options.runner.max_rows = 96;  // the prompt takes two passes
  FakeEngine engine(options);
  engine.Run(Ask(150, 4));
  Request request = Ask(150, 0);
  const std::span<const Token> prompt = request.prompt_tokens;
  request.embedding = Pooling::kMean;
  const Completion mean = engine.Run(request);
  EXPECT_EQ(mean.embedding, MeanState(engine, prompt));
  EXPECT_EQ(mean.timings.cached_prompt_tokens, 0);
  EXPECT_EQ(mean.finish_reason, FinishReason::kLength);
  EXPECT_TRUE(mean.token_ids.empty());
  request.embedding = Pooling::kFirst;
  EXPECT_EQ(engine.Run(request).embedding, engine.runner.StateOf(prompt.first(1)));
  request.embedding = Pooling::kLast;
  const Completion last = engine.Run(request);
  EXPECT_EQ(last.embedding, engine.runner.StateOf(prompt));
  EXPECT_GT(last.timings.cached_prompt_tokens, 0);
  request.embedding = Pooling::kNone;
  const auto all = engine.Run(request).embedding;
  ASSERT_EQ(all.size(), 8 * prompt.size());
  EXPECT_EQ(std::vector<float>(all.end() - 16, all.end() - 8),
            engine.runner.StateOf(prompt.first(prompt.size() - 1)));
}

}  // namespace
}  // namespace foretoken::engine
