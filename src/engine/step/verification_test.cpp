// SPDX-License-Identifier: Apache-2.0
#include "engine/step/verification.h"

#include <gtest/gtest.h>

#include <limits>

#include "engine/step/fake_engine_testing.h"

namespace foretoken::engine {
namespace {

// A request that decodes, with the drafts of its next round.
struct Round {
  explicit Round(int wrong_every = 0, const FakeEngine::Options& options = {}) : engine(options) {
    engine.drafter->wrong_every = wrong_every;
    engine.Begin(FakeEngine::Ask(10, 40));
    engine.Step();
    engine.Plan(), engine.Propose();
  }
  // With rows of logits that are not finite, the pass computed.
  const SequenceVerdict& VerifyWithout(int bad_row) {
    Flatten(engine.plan, engine.drafts, engine.sequences(), engine.cache, *engine.pass);
    kv::Transaction pending(engine.cache, engine.pass->segments);
    model::PassResult result = engine.runner.Run(engine.pass->View());
    finite.assign(result.finite_rows.begin(), result.finite_rows.end());
    finite.at(static_cast<std::size_t>(bad_row)) = 0;
    result.finite_rows = finite;
    engine.verification->Verify(engine.plan, engine.drafts, *engine.pass, result,
                                engine.sequences(), engine.verdicts);
    return engine.verdicts.entries.at(0);
  }
  FakeEngine engine;
  std::vector<std::uint8_t> finite;
};

TEST(Verification, AcceptsTheDraftsThatTheTargetWouldChoose) {
  Round round;
  const SequenceVerdict verdict = round.engine.Verify().entries.at(0);
  EXPECT_EQ(verdict.verdict.accepted, 4);
  EXPECT_EQ(verdict.verdict.kind, round::NextKind::kBonus);
  EXPECT_EQ(round.engine.verdicts.kept.at(0), 5);
  EXPECT_EQ(verdict.not_finite, -1);
  EXPECT_EQ(verdict.processor_fault, -1);
}

TEST(Verification, KeepsThePrefixBeforeTheFirstWrongDraft) {
  Round round(3);
  const SequenceVerdict verdict = round.engine.Verify().entries.at(0);
  EXPECT_EQ(verdict.verdict.accepted, 2);
  EXPECT_EQ(verdict.verdict.kind, round::NextKind::kRecovered);
  EXPECT_EQ(round.engine.verdicts.kept.at(0), 3);
  EXPECT_EQ(round.engine.cache.length(0), 10 + 3);
}

TEST(Verification, APlainRoundGivesTheTargetsToken) {
  FakeEngine::Options options;
  options.drafts = 1;
  Round round(0, options);
  round.engine.drafts.entries[0].proposal = {};
  const SequenceVerdict verdict = round.engine.Verify().entries.at(0);
  EXPECT_EQ(verdict.verdict.accepted, 0);
  EXPECT_EQ(verdict.verdict.kind, round::NextKind::kPlain);
  EXPECT_EQ(verdict.verdict.next, round.engine.Expected(FakeEngine::Ask(10, 40))[1]);
}

TEST(Verification, ALogitRowThatIsNotFiniteEndsTheTextOnlyWhereItIsReached) {
  {
    Round round;
    EXPECT_EQ(round.VerifyWithout(0).not_finite, 11);  // the prompt and one token
  }
  {
    Round round;
    const SequenceVerdict verdict = round.VerifyWithout(2);
    EXPECT_EQ(verdict.verdict.accepted, 2);  // those before it are good
    EXPECT_EQ(verdict.not_finite, 13);
  }
  {
    Round round(1);  // the first draft is wrong, so no row behind it matters
    const SequenceVerdict verdict = round.VerifyWithout(2);
    EXPECT_EQ(verdict.verdict.accepted, 0);
    EXPECT_EQ(verdict.not_finite, -1);
  }
}

TEST(Verification, APromptThatGoesOnHasNoVerdict) {
  FakeEngine engine;
  engine.Begin(FakeEngine::Ask(200, 4));
  engine.Plan(), engine.Propose(), engine.Verify();
  ASSERT_FALSE(engine.plan.entries.at(0).decodes);
  EXPECT_EQ(engine.verdicts.entries.at(0).verdict.next, kNoToken);
  EXPECT_EQ(engine.verdicts.kept.at(0), engine.plan.entries[0].n_feed);
}

TEST(Verification, FindsTheFaultOfALogitsProcessor) {
  FakeEngine engine;
  Request request = FakeEngine::Ask(10, 4);
  request.sampling.processors.push_back([](std::span<const Token>, std::span<float> logits) {
    logits[0] = std::numeric_limits<float>::quiet_NaN();
  });
  engine.Begin(request);
  engine.Plan(), engine.Propose(), engine.Verify();
  EXPECT_EQ(engine.verdicts.entries.at(0).processor_fault, 10);
}

TEST(Verification, EachSequenceHasItsOwnVerdict) {
  FakeEngine engine;
  engine.Begin(FakeEngine::Ask(10, 40, 1));
  engine.Begin(FakeEngine::Ask(12, 40, 2));
  while (engine.Step() && engine.plan.prefills()) continue;
  engine.Plan(), engine.Propose();
  ASSERT_EQ(engine.plan.size(), 2U);
  engine.drafts.entries[0].proposal = {};
  engine.Verify();
  EXPECT_EQ(engine.verdicts.entries.at(0).verdict.accepted, 0);
  EXPECT_EQ(engine.verdicts.entries.at(1).verdict.accepted, 4);
  EXPECT_EQ(engine.verdicts.kept, (std::vector<int>{1, 5}));
}

}  // namespace
}  // namespace foretoken::engine
