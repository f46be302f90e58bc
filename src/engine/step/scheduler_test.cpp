// SPDX-License-Identifier: Apache-2.0
#include "engine/step/scheduler.h"

#include <gtest/gtest.h>

#include "engine/step/fake_engine_testing.h"

namespace foretoken::engine {
namespace {

TEST(Scheduler, PlansNothingWithoutRequests) {
  FakeEngine engine;
  EXPECT_TRUE(engine.Plan().empty());
}

TEST(Scheduler, ReadsAPromptAndThenDecodesWithRoomForADraft) {
  FakeEngine engine;
  engine.Begin(Ask(10, 20));
  const PlannedSequence prompt = engine.Plan().entries.at(0);
  EXPECT_TRUE(prompt.prefill && prompt.decodes && !prompt.may_draft && !prompt.again);
  EXPECT_EQ(prompt.n_feed, 10);
  engine.Propose(), engine.Verify(), engine.Apply(), engine.Observe();
  const PlannedSequence round = engine.Plan().entries.at(0);
  EXPECT_TRUE(round.decodes && round.may_draft && !round.prefill);
  EXPECT_EQ(round.n_feed, 1);
  EXPECT_EQ(round.max_draft, 4);
}

TEST(Scheduler, ADraftLeavesRoomForTheTargetsToken) {
  FakeEngine engine;
  engine.Begin(Ask(10, 3));
  engine.Step();
  EXPECT_EQ(engine.Plan().entries.at(0).max_draft, 1);  // of two tokens left
}

TEST(Scheduler, DecodingRequestsComeBeforePrompts) {
  FakeEngine engine;
  engine.Begin(Ask(10, 50));
  engine.Step();
  engine.Begin(Ask(12, 50, 2));
  const PassPlan& plan = engine.Plan();
  ASSERT_EQ(plan.size(), 2U);
  EXPECT_EQ(plan.entries[0].seq, 0);
  EXPECT_FALSE(plan.entries[0].prefill);
  EXPECT_EQ(plan.entries[1].seq, 1);
  EXPECT_TRUE(plan.entries[1].prefill);
  EXPECT_TRUE(plan.prefills());
}

// A long prompt is read beside a request that decodes. Meanwhile its drafts are bounded, and the text
// stays that of plain decoding.
TEST(Scheduler, BoundsDraftsWhileAPromptIsRead) {
  for (const int bound : {0, 2, kMaxDraft}) {
    FakeEngine engine({.mixed_drafts = bound});
    const Request short_one = Ask(10, 60);
    const Ticket ticket = engine.Begin(short_one);
    engine.Step();
    engine.Begin(Ask(200, 4, 2));
    int mixed = 0, others = 0;
    while (!engine.Plan().empty()) {
      const bool reads = engine.plan.prefills();
      const PlannedSequence first = engine.plan.entries[0];
      if (first.seq == 0 && !first.prefill && engine.At(0).emitter.tokens_left() > 4) {
        EXPECT_EQ(first.max_draft, reads ? std::min(bound, 4) : 4);
        EXPECT_EQ(first.mixed, reads && bound < 4);
        ++(reads ? mixed : others);
      }
      engine.Propose();
      if (reads && bound == 0 && first.seq == 0)
        EXPECT_EQ(engine.drafts.entries[0].why_plain, PlainReason::kBudget);
      engine.Verify(), engine.Apply(), engine.Observe();
    }
    EXPECT_GT(mixed, 1);
    EXPECT_GT(others, 1);
    EXPECT_EQ(engine.admission->Take(ticket)->token_ids, engine.Expected(short_one));
  }
}

TEST(Scheduler, TheBoundOfMixedBatchesNeverChangesATextThatFollowsItsDrafts) {
  FakeEngine engine({.mixed_drafts = 1});
  Request request = Ask(10, 40);
  request.sampling.temperature = 1;
  request.speculative.strategy = VerifyStrategy::kTargetProbability;
  engine.Begin(request);
  engine.Step();
  engine.Begin(Ask(200, 4, 2));
  const PassPlan& plan = engine.Plan();
  ASSERT_TRUE(plan.prefills());
  EXPECT_EQ(plan.entries[0].max_draft, 4);
}

TEST(Scheduler, ALongPromptLetsDecodingRequestsGoOn) {
  FakeEngine engine;
  engine.Begin(Ask(10, 50));
  engine.Step();
  engine.Begin(Ask(200, 20, 2));
  const PassPlan& plan = engine.Plan();
  ASSERT_EQ(plan.size(), 2U);
  EXPECT_EQ(plan.entries[1].n_feed, PromptRows::kUnknown);  // nothing is known of costs
  EXPECT_FALSE(plan.entries[1].decodes);
}

TEST(Scheduler, ThePromptWithTheLeastLeftComesFirst) {
  FakeEngine engine({.sequences = 3});
  engine.Begin(Ask(200, 20, 1));
  engine.Begin(Ask(30, 20, 2));
  const PassPlan& plan = engine.Plan();
  ASSERT_EQ(plan.size(), 1U);  // nothing that need not be in the pass delays a first token
  EXPECT_EQ(plan.entries[0].seq, 1);
  EXPECT_TRUE(plan.entries[0].decodes);
}

TEST(Scheduler, APromptThatWasPassedOverGetsHalfOfTheRows) {
  FakeEngine engine({.sequences = 4});
  engine.Begin(Ask(200, 20, 1));
  for (Token first = 2; first < 5; ++first) engine.Begin(Ask(60, 20, first));
  int passes = 0, rows = 0;
  for (; rows == 0 && passes < 10; ++passes) {
    engine.Plan();
    for (const PlannedSequence& planned : engine.plan.entries)
      if (planned.seq == 0) rows = planned.n_feed;
    engine.Propose(), engine.Verify(), engine.Apply(), engine.Observe();
  }
  EXPECT_EQ(passes, 3);  // it let shorter ones go before twice
  EXPECT_GT(rows, 0);
  EXPECT_LE(rows, PromptRows::kUnknown / 2);
}

TEST(Scheduler, PausedRequestsTakeNoPart) {
  FakeEngine engine;
  const Ticket ticket = engine.Begin(Ask(10, 20));
  engine.Step();
  engine.admission->Pause(ticket, true);
  EXPECT_TRUE(engine.Plan().empty());
  engine.admission->Pause(ticket, false);
  EXPECT_EQ(engine.Plan().size(), 1U);
}

TEST(Scheduler, SharesTheBlocksOfAPromptThatWasReadBefore) {
  FakeEngine engine;
  engine.Run(Ask(70, 2));
  engine.Begin(Ask(70, 2));
  const PlannedSequence planned = engine.Plan().entries.at(0);
  EXPECT_EQ(planned.n_feed, 1);  // for its logits
  EXPECT_EQ(engine.scheduler->cached_prompt_tokens(), 69);
}

TEST(Scheduler, SharesNothingWhereTheRequestDoesNotWantIt) {
  FakeEngine engine;
  engine.Run(Ask(60, 2));
  Request request = Ask(60, 2);
  request.reuse_prefix = false;
  engine.Begin(request);
  EXPECT_EQ(engine.Plan().entries.at(0).n_feed, 60);
}

TEST(Scheduler, KeepsNothingOfARequestThatDoesNotWantIt) {
  FakeEngine engine({.sequences = 1});
  Request request = Ask(70, 2);
  request.reuse_prefix = false;
  engine.Run(request);
  EXPECT_EQ(engine.cache.n_idle_blocks(), 0);
  engine.Begin(Ask(70, 2));
  EXPECT_EQ(engine.Plan().entries.at(0).n_feed, 70);
}

TEST(Scheduler, SharesBlocksAmongRequestsOfOneSaltOnly) {
  FakeEngine engine({.sequences = 1});
  const auto rows = [&](const std::string& salt) {
    Request request = Ask(70, 2);
    request.cache_salt = salt;
    const Ticket ticket = engine.Begin(request);
    const int n = engine.Plan().entries.at(0).n_feed;
    while (engine.Step()) continue;
    engine.admission->Take(ticket);
    return n;
  };
  EXPECT_EQ(rows("ann"), 70);
  EXPECT_EQ(rows("bob"), 70);
  EXPECT_EQ(rows(""), 70);
  for (const char* const salt : {"ann", "bob", ""}) EXPECT_EQ(rows(salt), 1) << salt;
}

// Two requests of three blocks each do not fit four blocks.
FakeEngine::Options Small() {
  FakeEngine::Options options;
  options.runner.n_blocks = 4;
  options.context = 128;
  return options;
}

TEST(Scheduler, PreemptsTheYoungestWhereBlocksRunOut) {
  FakeEngine engine(Small());
  const Request first = Ask(30, 60, 1), second = Ask(30, 60, 2);
  const Ticket one = engine.Begin(first), two = engine.Begin(second);
  while (engine.Step()) continue;
  const Completion a = *engine.admission->Take(one), b = *engine.admission->Take(two);
  EXPECT_GT(engine.scheduler->preemptions(), 0);
  EXPECT_EQ(a.timings.preemptions, 0);
  EXPECT_EQ(b.timings.preemptions, engine.scheduler->preemptions());
  EXPECT_EQ(a.token_ids, engine.Expected(first));  // and no text changes
  EXPECT_EQ(b.token_ids, engine.Expected(second));
}

TEST(Scheduler, ARequestThatDoesNotFitWaits) {
  FakeEngine engine(Small());
  engine.Begin(Ask(60, 4, 1));
  engine.Step();
  engine.Begin(Ask(90, 4, 2));
  engine.Plan();
  EXPECT_EQ(engine.admission->n_waiting(), 1);
  while (engine.Step()) continue;
  EXPECT_TRUE(engine.admission->idle());
}

TEST(Scheduler, DraftsAreDroppedBeforeARequestIsPreempted) {
  FakeEngine engine(Small());
  engine.Begin(Ask(30, 60, 1));
  engine.Begin(Ask(30, 60, 2));
  bool dropped = false;
  while (!engine.Plan().empty() && engine.scheduler->preemptions() == 0) {
    for (const PlannedSequence& planned : engine.plan.entries)
      dropped |= planned.may_draft && planned.max_draft < 4 &&
                 engine.At(planned.seq).emitter.tokens_left() > 5;
    engine.Propose(), engine.Verify(), engine.Apply(), engine.Observe();
  }
  EXPECT_TRUE(dropped);
  EXPECT_GT(engine.scheduler->preemptions(), 0);
}

TEST(Scheduler, FitsWhileTheCacheHasBlocksForTheDrafts) {
  FakeEngine engine(Small());
  engine.Begin(Ask(30, 60, 1));
  engine.Step();
  engine.Plan(), engine.Propose();
  EXPECT_TRUE(engine.scheduler->Fits(engine.plan, engine.drafts));
  engine.drafts.entries[0].asked = 200;
  EXPECT_FALSE(engine.scheduler->Fits(engine.plan, engine.drafts));
}

}  // namespace
}  // namespace foretoken::engine
