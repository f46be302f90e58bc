// SPDX-License-Identifier: Apache-2.0
#include "engine/requests/admission.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/step/fake_engine_testing.h"

namespace foretoken::engine {
namespace {

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
  EXPECT_EQ(s.completion.controller, "fixed");
}

TEST(Admission, ARequestsDraftersBeginWithItAndEndWithIt) {
  FakeEngine engine;
  const Ticket ticket = engine.Begin(Ask(10, 40));
  engine.Step();
  EXPECT_EQ(engine.drafter->n_begun, 1);
  engine.admission->End(ticket);
  EXPECT_EQ(engine.drafter->n_ended, 1);
  Request plain = Ask(10, 2);
  plain.speculative.enabled = false;
  engine.Run(plain);
  EXPECT_EQ(engine.drafter->n_begun, 1);
}

TEST(Admission, ARequestsDraftersKnowItsSalt) {
  FakeEngine engine;
  const auto salt = [&](const std::string& text, bool reuse = true) {
    Request request = Ask(10, 2);
    request.cache_salt = text;
    request.reuse_prefix = reuse;
    engine.Run(request);
    EXPECT_EQ(engine.drafter->teaches, reuse);
    return engine.drafter->salt;
  };
  const SaltId ann = salt("ann"), bob = salt("bob");
  EXPECT_EQ(salt(""), kNoSalt);
  EXPECT_NE(ann, kNoSalt);
  EXPECT_NE(ann, bob);
  EXPECT_EQ(salt("ann", false), ann);
}

TEST(Salts, ThatWereNotUsedForLongGetAnotherNumber) {
  Salts salts;
  const SaltId first = salts.Of("first");
  std::set<SaltId> given = {first};
  for (std::size_t i = 0; i < 3 * Salts::kMost; ++i) {
    EXPECT_TRUE(given.insert(salts.Of(std::to_string(i))).second) << "no number is given twice";
    if (i < 2 * Salts::kMost) {
      EXPECT_EQ(salts.Of("first"), first) << "it is in use";
    }
  }
  EXPECT_EQ(salts.size(), Salts::kMost);
  EXPECT_TRUE(given.insert(salts.Of("first")).second);
}

TEST(Admission, ADrafterMayHaveSamplingOfItsOwn) {
  FakeEngine engine({.sequences = 1});
  Request request = Ask(10, 2);
  request.sampling.temperature = 0.5f;
  engine.Run(request);
  EXPECT_EQ(engine.drafter->temperature, 0.5f);
  request.speculative.draft_sampling = SamplingParameters{.temperature = 0.25f};
  engine.Run(request);
  EXPECT_EQ(engine.drafter->temperature, 0.25f);
}

TEST(Admission, AContextThatIsFullEndsTheText) {
  FakeEngine engine({.context = 64});
  const Completion completion = engine.Run(Ask(60, 40));
  EXPECT_EQ(completion.token_ids.size(), 4U);
  EXPECT_EQ(completion.finish_reason, FinishReason::kLength);
}

TEST(Admission, StopTokensOfARequestAddToTheModels) {
  FakeEngine plain;
  const std::vector<Token> text = plain.Expected(Ask(10, 20));
  FakeEngine engine({.end_tokens = {text[9]}});
  const auto length_with = [&](std::vector<Token> stops, bool ignore) {
    Request request = Ask(10, 20);
    request.stop_token_ids = std::move(stops);
    request.ignore_eos = ignore;
    return engine.Run(request).token_ids.size();
  };
  const auto first = [&](Token token) {
    return static_cast<std::size_t>(std::find(text.begin(), text.end(), token) - text.begin()) + 1;
  };
  EXPECT_EQ(length_with({}, false), first(text[9]));
  EXPECT_EQ(length_with({text[4]}, false), std::min(first(text[4]), first(text[9])));
  EXPECT_EQ(length_with({text[4]}, true), first(text[4]));
  EXPECT_EQ(length_with({}, true), 20U);
}

TEST(Admission, TicketsAreNeverUsedAgain) {
  FakeEngine engine;
  const Ticket first = engine.Begin(Ask(10, 1)), second = engine.Begin(Ask(10, 1));
  EXPECT_NE(first, 0U);
  EXPECT_NE(first, second);
  while (engine.Step()) continue;
  engine.admission->Take(first);
  EXPECT_GT(engine.Begin(Ask(10, 1)), second);
}

TEST(Admission, ForEachUnendedLeavesOutResults) {
  FakeEngine engine({.sequences = 1});
  const Ticket ended = engine.Begin(Ask(10, 0)), runs = engine.Begin(Ask(10, 40)),
               waits = engine.Begin(Ask(10, 40));
  engine.Step();
  std::vector<Ticket> seen;
  engine.admission->ForEachUnended([&](Job& job) { seen.push_back(job.ticket); });
  EXPECT_EQ(seen, (std::vector<Ticket>{runs, waits}));
  EXPECT_TRUE(engine.admission->Take(ended));
}

TEST(Admission, MemoryThatRunsOutWhileARequestIsAdmittedEndsItAlone) {
  FakeEngine engine;
  engine.drafter->fails_to_begin = true;
  const Ticket fails = engine.Begin(Ask(10, 5, 1));
  Request plain = Ask(10, 5, 2);
  plain.speculative.enabled = false;
  const Ticket runs = engine.Begin(plain);
  while (engine.Step()) continue;
  const Completion failed = *engine.admission->Take(fails), whole = *engine.admission->Take(runs);
  ASSERT_TRUE(failed.error);
  EXPECT_EQ(failed.error->code, ErrorCode::kNoMemory);
  EXPECT_EQ(failed.finish_reason, FinishReason::kError);
  EXPECT_EQ(whole.token_ids, engine.Expected(plain));
}

}  // namespace
}  // namespace foretoken::engine
