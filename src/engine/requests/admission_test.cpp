// SPDX-License-Identifier: Apache-2.0
#include "engine/requests/admission.h"

#include <gtest/gtest.h>

#include "engine/step/fake_engine_testing.h"

namespace foretoken::engine {
namespace {

Request Ask(int p, int n, Token first = 1) {
  return FakeEngine::Ask(p, n, first);
}

TEST(Admission, RequestsWaitForASequence) {
  FakeEngine engine({.sequences = 2});
  for (Token first = 1; first < 4; ++first) engine.Begin(Ask(10, 5, first));
  EXPECT_EQ(engine.admission->n_waiting(), 3);
  EXPECT_FALSE(engine.admission->idle());
  engine.Plan();
  EXPECT_EQ(engine.admission->n_waiting(), 1);
  while (engine.Step()) continue;
  EXPECT_TRUE(engine.admission->idle());
}

TEST(Admission, ResultsAreTakenOnceTheyAreThere) {
  FakeEngine engine;
  const Ticket ticket = engine.Begin(Ask(10, 2));
  EXPECT_FALSE(engine.admission->Take(ticket));
  while (engine.Step()) continue;
  const auto completion = engine.admission->Take(ticket);
  ASSERT_TRUE(completion);
  EXPECT_EQ(completion->prompt_token_ids, Ask(10, 2).prompt_tokens);
  EXPECT_EQ(completion->strategy, "greedy");
  EXPECT_TRUE(completion->lossless);
  EXPECT_FALSE(engine.admission->Take(ticket));
}

TEST(Admission, ARequestForNoTokensEndsAtOnce) {
  FakeEngine engine;
  const Ticket ticket = engine.Begin(Ask(10, 0));
  EXPECT_TRUE(engine.Plan().empty());
  EXPECT_EQ(engine.admission->Take(ticket)->finish_reason, FinishReason::kLength);
  EXPECT_EQ(engine.runner.n_passes(), 0);
}

TEST(Admission, CancelledRequestsEndBeforeTheNextPass) {
  FakeEngine engine({.sequences = 1});
  const Ticket runs = engine.Begin(Ask(10, 40, 1)), waits = engine.Begin(Ask(10, 40, 2));
  engine.Step();
  engine.admission->Cancel(runs), engine.admission->Cancel(waits);
  engine.admission->Cancel(12345);  // unknown tickets are ignored
  EXPECT_TRUE(engine.Plan().empty());
  const Completion a = *engine.admission->Take(runs), b = *engine.admission->Take(waits);
  EXPECT_EQ(a.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(a.token_ids.size(), 1U);
  EXPECT_EQ(b.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(engine.cache.length(0), 0);
}

TEST(Admission, AnEndedRequestGivesItsBlocksBack) {
  FakeEngine engine({.prefix_cache = false});
  const Ticket ticket = engine.Begin(Ask(40, 40));
  engine.Step();
  EXPECT_LT(engine.cache.n_free_blocks(), engine.cache.n_blocks());
  EXPECT_EQ(engine.admission->End(ticket), 0);
  EXPECT_EQ(engine.cache.n_free_blocks(), engine.cache.n_blocks());
  EXPECT_EQ(engine.admission->Take(ticket)->finish_reason, FinishReason::kCancelled);
}

TEST(Admission, ARequestThatWaitsCanBeEnded) {
  FakeEngine engine({.sequences = 1});
  engine.Begin(Ask(10, 40, 1));
  engine.Step();
  Request request = Ask(10, 40, 2);
  request.seed = 77;
  const Ticket waits = engine.Begin(request);
  EXPECT_EQ(engine.admission->End(waits), -1);
  EXPECT_EQ(engine.admission->n_waiting(), 0);
  const Completion completion = *engine.admission->Take(waits);
  EXPECT_EQ(completion.seed, 77U);
  EXPECT_EQ(completion.prompt_token_ids, request.prompt_tokens);
}

TEST(Admission, ARequestTakesItsOwnSettings) {
  FakeEngine engine;
  Request request = Ask(10, 40);
  request.speculative.num_speculative_tokens = 2;
  engine.Begin(request);
  engine.Plan();
  const Sequence& s = engine.At(0);
  EXPECT_EQ(s.most_drafts, 2);
  EXPECT_EQ(s.least_drafts, 1);
  EXPECT_EQ(s.drafters, std::vector<int>{0});
  EXPECT_FALSE(s.follows_drafts);
  EXPECT_EQ(s.completion.lookahead, "fixed");
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
  EXPECT_TRUE(why(request).starts_with("prompt tokens: 50 is not in the vocabulary"));
  request = Ask(10, 5);
  request.min_new_tokens = 6;
  EXPECT_TRUE(why(request).starts_with("min tokens: 6 is more than max tokens 5"));
  request = Ask(10, 5);
  request.speculative.method = "ngram";
  EXPECT_TRUE(why(request).starts_with("speculative method: 'ngram' is not one of this engine's"));
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

TEST(SpeculationRules, ChooseAVerifierThatFits) {
  const FakeEngine engine;
  Request request = Ask(10, 5);
  EXPECT_EQ(engine.rules->VerifierFor(request).name(), "greedy");
  request.sampling.temperature = 1;
  EXPECT_EQ(engine.rules->VerifierFor(request).name(), "sample-match");
  request.speculative.strategy = VerifyStrategy::kResidual;
  EXPECT_EQ(engine.rules->VerifierFor(request).name(), "residual");
  EXPECT_TRUE(engine.rules->FollowsDrafts(request, engine.rules->VerifierFor(request)));
  EXPECT_EQ(engine.rules->ControllerOf(true, true), "fixed");
  EXPECT_EQ(engine.rules->ControllerOf(false, true), "");
}

}  // namespace
}  // namespace foretoken::engine
