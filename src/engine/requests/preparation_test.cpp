// SPDX-License-Identifier: Apache-2.0
#include "engine/requests/preparation.h"

#include <gtest/gtest.h>

#include <thread>

#include "engine/step/fake_engine_testing.h"

namespace foretoken::engine {
namespace {

// The message, or "" if the request is accepted.
std::string WhyNot(const FakeEngine& engine, const Request& request) {
  const auto prepared = engine.preparation->Prepare(request);
  return prepared ? "" : prepared.error().message;
}

TEST(Preparation, RefusesWhatTheEngineCannotDo) {
  const FakeEngine engine;
  const auto why = [&engine](const Request& request) {
    const auto prepared = engine.preparation->Prepare(request);
    return prepared ? std::string() : prepared.error().message;
  };
  EXPECT_EQ(why(Ask(10, 5)), "");
  EXPECT_TRUE(why(Ask(0, 5)).starts_with("prompt: it has no tokens"));
  EXPECT_TRUE(why(Ask(256, 5)).starts_with("prompt: 256 tokens do not fit a context of 256"));
  Request request = Ask(10, 5);
  request.prompt_tokens[3] = 50;
  EXPECT_TRUE(why(request).starts_with("prompt_tokens: 50 is not in the vocabulary"));
  request = Ask(10, 5);
  request.min_new_tokens = 6;
  EXPECT_TRUE(why(request).starts_with("min_new_tokens: 6 is more than the 5 of max_new_tokens"));
  request = Ask(10, 5);
  request.speculative.method = "ngram";
  EXPECT_TRUE(why(request).starts_with("speculative_method: 'ngram' is not one of this engine's"));
  request = Ask(10, 5);
  request.sampling.temperature = 1;
  request.speculative.strategy = VerifyStrategy::kResidual;
  EXPECT_TRUE(why(request).starts_with("verify: 'residual' needs a drafter"));
  request.speculative.strategy = VerifyStrategy::kGreedy;
  EXPECT_TRUE(why(request).starts_with("verify: 'greedy' with temperature 1"));
}

TEST(Preparation, MakesTokensOfThePrompt) {
  const FakeEngine engine;
  Request request;
  request.prompt = "bcd";
  const auto prepared = engine.preparation->Prepare(request);
  ASSERT_TRUE(prepared);
  const auto tokens = prepared->prompt_tokens();
  EXPECT_EQ(std::vector<Token>(tokens.begin(), tokens.end()), (std::vector<Token>{1, 2, 3}));
  EXPECT_TRUE(engine.preparation->Made(*prepared));
  const FakeEngine other;
  EXPECT_FALSE(other.preparation->Made(*prepared));
}

// A long prediction costs the client's own thread, and no more memory than a context takes.
TEST(Preparation, MakesTokensOfThePredictionAsManyAsFit) {
  const FakeEngine engine;
  Request request = Ask(10, 5);
  EXPECT_TRUE(engine.preparation->Prepare(request)->prediction_tokens().empty());
  request.prediction = "bcd";
  auto prepared = engine.preparation->Prepare(request);
  ASSERT_TRUE(prepared);
  auto tokens = prepared->prediction_tokens();
  EXPECT_EQ(std::vector<Token>(tokens.begin(), tokens.end()), (std::vector<Token>{1, 2, 3}));
  request.prediction = std::string(100'000, 'b');
  prepared = engine.preparation->Prepare(request);
  ASSERT_TRUE(prepared);
  tokens = prepared->prediction_tokens();
  EXPECT_EQ(std::vector<Token>(tokens.begin(), tokens.end()), std::vector<Token>(256, 1));
}

TEST(Preparation, RefusesOutputThatNoRequestCanHave) {
  const FakeEngine engine;
  Request request = Ask(10, -1);
  EXPECT_EQ(WhyNot(engine, request), "max_new_tokens: -1 is negative; use 0 or more");
  request = Ask(10, 5);
  request.min_new_tokens = -2;
  EXPECT_EQ(WhyNot(engine, request), "min_new_tokens: -2 is negative; use 0 or more");
  request = Ask(10, 5);
  request.logprobs = 65;
  EXPECT_TRUE(WhyNot(engine, request).starts_with("logprobs: 65 is out of range; use 0 to 64"));
  request = Ask(10, 5);
  request.prompt_logprobs = -2;
  EXPECT_TRUE(WhyNot(engine, request).starts_with("prompt_logprobs: -2 is out of range"));
  request = Ask(10, 2);
  request.cache_salt = std::string(1025, 's');
  EXPECT_TRUE(WhyNot(engine, request).starts_with("cache_salt: 1025 bytes are more than 1024"));
  request = Ask(10, 5);
  request.stop = {"end", ""};
  EXPECT_EQ(WhyNot(engine, request), "stop: an empty stop string; drop it");
  request = Ask(10, 5);
  request.stop_token_ids = {3, -1};
  EXPECT_EQ(WhyNot(engine, request), "stop_token_ids: -1 is not in the vocabulary; use 0 to 49");
}

TEST(Preparation, NamesTheDraftSamplingWhereThatIsWrong) {
  const FakeEngine engine;
  Request request = Ask(10, 5);
  request.sampling.temperature = 9;
  const std::string target = WhyNot(engine, request);
  request = Ask(10, 5);
  request.speculative.draft_sampling = SamplingParameters{.temperature = 9};
  EXPECT_EQ(WhyNot(engine, request), "draft_sampling: " + target);
}

// Each request must be able to run alone, when all others have lost their blocks.
TEST(Preparation, ARequestFitsTheWholeCacheOrIsRefused) {
  const FakeEngine engine({.runner = {.max_rows = 160, .max_logit_rows = 160, .n_blocks = 2}});
  EXPECT_EQ(WhyNot(engine, Ask(44, 20)), "");
  EXPECT_TRUE(WhyNot(engine, Ask(44, 21))
                  .starts_with("prompt: 44 tokens and up to 21 more do not fit a cache of 64"));
}

// The room of a request ends with the context, so a long wish is not refused for its length.
TEST(Preparation, MoreTokensThanTheContextHasMayBeAskedFor) {
  const FakeEngine engine({.context = 64});
  EXPECT_EQ(WhyNot(engine, Ask(10, 1000)), "");
}

TEST(Preparation, ATraceBeginsWithATokenOfTheTargets) {
  const FakeEngine engine({.record = testing::TempDir() + "preparation.jsonl"});
  Request request = Ask(10, 5);
  EXPECT_EQ(WhyNot(engine, request), "");
  request.speculative.first_target = false;
  EXPECT_TRUE(WhyNot(engine, request).starts_with("first_target: a trace begins with"));
}

TEST(Preparation, GivenTokensGoBeforeText) {
  const FakeEngine engine;
  Request request = Ask(3, 5);
  request.prompt = "zzz";
  const std::vector<Token> given = request.prompt_tokens;
  const auto prepared = engine.preparation->Prepare(request);
  ASSERT_TRUE(prepared);
  const auto tokens = prepared->prompt_tokens();
  EXPECT_EQ(std::vector<Token>(tokens.begin(), tokens.end()), given);
}

TEST(Preparation, CompilesAGrammarOnceForAllItsRequests) {
  const FakeEngine engine;
  Request request = Ask(3, 5);
  EXPECT_EQ(engine.preparation->Prepare(request)->grammar(), nullptr);
  request.sampling.grammar = "root ::= [a-c]+";
  const auto first = engine.preparation->Prepare(request),
             second = engine.preparation->Prepare(request);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->grammar(), nullptr);
  EXPECT_EQ(first->grammar(), second->grammar());
  request.sampling.grammar = "root ::= [";
  EXPECT_EQ(engine.preparation->Prepare(request).error().code, ErrorCode::kInvalidArgument);
}

TEST(Preparation, AGrammarBindsTheText) {
  FakeEngine engine;
  Request request = Ask(3, 12);
  request.sampling.grammar = "root ::= [a-c]+";
  request.speculative.enabled = false;
  for (const char c : engine.Run(request).text) EXPECT_TRUE(c >= 'a' && c <= 'c') << c;
}

// Threads of a server prepare while the engine's thread runs requests.
TEST(Preparation, ManyThreadsPrepareAtOnce) {
  const FakeEngine engine;
  std::vector<std::thread> threads;
  std::vector<std::string> why(4);
  for (std::size_t t = 0; t < why.size(); ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        Request request = Ask(3 + i, 5);
        request.sampling.grammar = "root ::= \"" + std::to_string(i % 3) + "\" | [a-z]";
        why[t] += WhyNot(engine, request);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& reason : why) EXPECT_EQ(reason, "");
}

}  // namespace
}  // namespace foretoken::engine
