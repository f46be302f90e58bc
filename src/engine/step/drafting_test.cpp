// SPDX-License-Identifier: Apache-2.0
#include "engine/step/drafting.h"

#include <gtest/gtest.h>

#include "engine/step/fake_engine_testing.h"

namespace foretoken::engine {
namespace {

// One that decodes, before its next drafts.
void Start(FakeEngine& engine, const Request& request) {
  engine.Begin(request);
  engine.Step();
  engine.Plan();
}

TEST(Drafting, DraftsAsManyTokensAsTheControllerChooses) {
  FakeEngine engine;
  Start(engine, Ask(10, 40));
  const DraftedSequence& drafted = engine.Propose().entries.at(0);
  EXPECT_EQ(drafted.length(), 4);
  EXPECT_EQ(drafted.drafter, 0);
  EXPECT_EQ(drafted.wanted, 4);
  EXPECT_EQ(drafted.asked, 4);
  EXPECT_EQ(engine.drafts.n_decoding, 1);
}

TEST(Drafting, ACallerMayWantOtherLengths) {
  FakeEngine engine;
  Start(engine, Ask(10, 40));
  EXPECT_EQ(engine.Propose({.length = 2}).entries.at(0).length(), 2);
  EXPECT_EQ(engine.Propose({.length = 0}).entries.at(0).length(), 0);
  EXPECT_EQ(engine.Propose({.length = 64}).entries.at(0).length(), 4);  // the plan has no more room
}

TEST(Drafting, AnInstantDrafterDraftsBeforeTheLengthsAreChosen) {
  FakeEngine engine({.instant = true});
  Start(engine, Ask(10, 40));
  EXPECT_EQ(engine.Propose().entries.at(0).length(), 4);
  engine.drafter->most = 2;
  const DraftedSequence& drafted = engine.Propose().entries.at(0);
  EXPECT_EQ(drafted.length(), 2);
  EXPECT_EQ(drafted.wanted, 4);  // it knew no more
}

TEST(Drafting, PromptsHaveNoDrafts) {
  FakeEngine engine;
  engine.Begin(Ask(10, 40));
  engine.Plan();
  EXPECT_EQ(engine.Propose().entries.at(0).length(), 0);
  EXPECT_EQ(engine.drafts.n_decoding, 0);
}

TEST(Drafting, WithoutFirstTargetThePromptsPassHasADraft) {
  FakeEngine engine;
  Request request = Ask(10, 40);
  request.speculative.first_target = false;
  engine.Begin(request);
  engine.Plan();
  EXPECT_EQ(engine.Propose().entries.at(0).length(), 4);
}

TEST(Drafting, SaysWhyASequenceDecodesPlainly) {
  const auto why = [](FakeEngine& engine, const Request& request) {
    Start(engine, request);
    const DraftedSequence& drafted = engine.Propose().entries.at(0);
    EXPECT_EQ(drafted.length(), 0);
    return drafted.why_plain;
  };
  {
    FakeEngine engine;
    Request request = Ask(10, 40);
    request.speculative.enabled = false;
    EXPECT_EQ(why(engine, request), PlainReason::kDisabled);
  }
  {
    FakeEngine engine;
    EXPECT_EQ(why(engine, Ask(10, 2)), PlainReason::kNoRoom);
  }
  {
    FakeEngine engine({.instant = true});
    engine.drafter->most = 0;
    EXPECT_EQ(why(engine, Ask(10, 40)), PlainReason::kNoDraft);
  }
  {
    FakeEngine engine;
    Start(engine, Ask(10, 40));
    engine.plan.entries[0].max_draft = 0;  // as where the blocks run out
    EXPECT_EQ(engine.Propose().entries.at(0).why_plain, PlainReason::kMemory);
  }
}

// Six sequences, and costs of passes of up to five rows.
TEST(Drafting, MoreSequencesThanMeasuredRowsHaveNoBudget) {
  FakeEngine engine({.sequences = 6, .controller = "cost-model"});
  const std::vector<PassCost> costs = {{1, 0, {.median = 1000}}, {5, 0, {.median = 1400}}};
  engine.estimates->costs.Start(costs);
  engine.estimates->costs.StartDrafter(0, 10, 10, 0);
  for (Token first = 1; first <= 6; ++first) engine.Begin(Ask(10, 40, first));
  engine.Step();
  engine.Plan();
  for (const DraftedSequence& drafted : engine.Propose().entries) {
    EXPECT_EQ(drafted.length(), 0);
    EXPECT_EQ(drafted.why_plain, PlainReason::kBudget);
  }
  EXPECT_EQ(engine.drafts.n_decoding, 6);
}

// Rows cost next to nothing, so the longest draft pays that a list of lengths allows.
TEST(Drafting, DraftsTheLengthsOfAListOnly) {
  for (const auto& [widths, length] :
       {std::pair(std::vector<int>(), 16), {{3, 6}, 6}, {{3, 20}, 3}, {{20}, 0}}) {
    FakeEngine engine({.drafts = 16, .controller = "cost-model", .widths = widths});
    const std::vector<PassCost> costs = {{1, 0, {.median = 1000}}, {30, 0, {.median = 1001}}};
    engine.estimates->costs.Start(costs);
    engine.estimates->costs.StartDrafter(0, 0.1, 0.1, 0);
    Start(engine, Ask(10, 200));
    for (int round = 0; round < 8; ++round) {
      engine.Step();
      engine.Plan();
    }
    EXPECT_EQ(engine.Propose().entries.at(0).length(), length);
  }
}

TEST(Drafting, WithholdsDraftsThatAreTooShort) {
  FakeEngine engine({.least_drafts = 3});
  engine.drafter->most = 2;
  Start(engine, Ask(10, 40));
  const DraftedSequence& drafted = engine.Propose().entries.at(0);
  EXPECT_EQ(drafted.length(), 0);
  EXPECT_EQ(drafted.withheld, 2);
  EXPECT_EQ(drafted.why_plain, PlainReason::kNoDraft);
}

TEST(Drafting, NotesADrafterWithoutFiniteLogitsOnce) {
  FakeEngine engine;
  engine.drafter->not_finite = 1;
  Start(engine, Ask(10, 40));
  engine.Propose(), engine.Propose();
  ASSERT_EQ(engine.notices.size(), 1U);
  EXPECT_TRUE(engine.notices.front().starts_with("fake.gguf: the draft model's logits"));
}

TEST(Drafting, TellsTheDrafterWhatBecameOfItsDrafts) {
  FakeEngine engine;
  engine.drafter->wrong_every = 3;
  Start(engine, Ask(10, 40));
  engine.Propose(), engine.Verify(), engine.Apply(), engine.Observe();
  EXPECT_EQ(engine.drafter->n_drafted, 4);
  EXPECT_EQ(engine.drafter->n_accepted, 2);
  // Its text is the sequence's, so that its next draft is right as far as it can be.
  engine.Plan(), engine.Propose();
  EXPECT_EQ(engine.Verify().entries.at(0).verdict.accepted, 2);
}

TEST(Drafting, DraftsOfTheCallersAreNotTheDrafters) {
  FakeEngine engine;
  Start(engine, Ask(10, 40));
  engine.Propose();
  engine.drafts.entries[0].given = true;
  engine.Verify(), engine.Apply(), engine.Observe();
  EXPECT_EQ(engine.drafter->n_drafted, 0);
}

TEST(Drafting, TheTextIsThatOfPlainDecoding) {
  for (const int wrong_every : {0, 1, 2, 5}) {
    FakeEngine engine;
    engine.drafter->wrong_every = wrong_every;
    const Request request = Ask(20, 60);
    const Completion completion = engine.Run(request);
    EXPECT_EQ(completion.token_ids, engine.Expected(request));
    if (wrong_every == 0) {
      EXPECT_LT(engine.runner.n_passes(), 20);
    }
  }
}

TEST(Drafting, CountsTheCostOfDrafts) {
  FakeEngine engine;
  Start(engine, Ask(10, 40));
  engine.Propose();
  EXPECT_GT(engine.estimates->costs.DraftsUs(0, 4, 4), 0);
}

}  // namespace
}  // namespace foretoken::engine
