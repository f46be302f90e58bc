// SPDX-License-Identifier: Apache-2.0
#include "engine/step/accounting.h"

#include <gtest/gtest.h>

#include <numeric>

#include "engine/step/fake_engine_testing.h"

namespace foretoken::engine {
namespace {

using Counts = std::vector<std::int64_t>;

TEST(Accounting, CountsDraftsByTheirPosition) {
  FakeEngine engine;
  engine.drafter->wrong_every = 3;
  const SpeculationStats s = engine.Run(Ask(10, 13)).speculation;  // 1 + 4 rounds of 3
  EXPECT_EQ(s.rounds, 4);
  EXPECT_EQ(s.draft_rounds, 4);
  EXPECT_EQ(s.target_forwards, 5);
  EXPECT_EQ(s.emitted, 13);
  EXPECT_EQ(s.plain, 1);
  EXPECT_EQ(s.recovered, 3);
  EXPECT_EQ(s.bonus, 1);  // the last draft has only two tokens
  EXPECT_EQ(s.drafted, 14);
  EXPECT_EQ(s.accepted, 8);
  EXPECT_EQ(s.drafted_per_position, (Counts{4, 4, 3, 3}));
  EXPECT_EQ(s.verified_per_position, (Counts{4, 4, 3, 0}));
  EXPECT_EQ(s.accepted_per_position, (Counts{4, 4, 0, 0}));
  EXPECT_EQ(s.k_histogram, (Counts{0, 0, 1, 0, 3}));
}

TEST(Accounting, DividesTheTimeOfAPassIntoPromptAndDecoding) {
  FakeEngine engine;
  engine.times = {.draft_ms = 2, .verify_ms = 5};
  const Completion completion = engine.Run(Ask(10, 11));
  EXPECT_EQ(completion.timings.prompt_tokens, 10);
  EXPECT_EQ(completion.timings.decoded_tokens, 10);
  EXPECT_GE(completion.timings.prompt_ms, 7);
  EXPECT_GE(completion.timings.decode_ms, 14);
  EXPECT_EQ(completion.speculation.draft_ms, 4);
  EXPECT_EQ(completion.speculation.verify_ms, 10);
}

TEST(Accounting, CountsPassesByTheirRows) {
  FakeEngine engine;
  engine.Run(Ask(10, 11));
  const EngineCounts& counts = engine.accounting->counts();
  std::vector<std::int64_t> passes;
  for (const auto& band : counts.verify) passes.push_back(band.passes);
  EXPECT_EQ(passes, (Counts{0, 0, 0, 2, 0, 0, 1}));  // five rows each; the prompt
  EXPECT_EQ(counts.rows_used, 10);
  EXPECT_EQ(counts.prefix_misses, 10);
  EXPECT_EQ(counts.chosen[4], 2);
  EXPECT_EQ(counts.rounds(), 2);
}

TEST(Accounting, CountsWhyRoundsArePlain) {
  FakeEngine engine;
  Request request = Ask(10, 5);
  request.speculative.enabled = false;
  engine.Run(request);
  const EngineCounts& counts = engine.accounting->counts();
  EXPECT_EQ(counts.plain[static_cast<std::size_t>(PlainReason::kDisabled)].rounds, 4);
  EXPECT_EQ(counts.chosen[0], 4);
}

TEST(Accounting, CountsNothingOfARequestThatHadAnError) {
  FakeEngine::Options options;
  options.runner.not_finite_every = 1;
  FakeEngine engine(options);
  const Completion completion = engine.Run(Ask(10, 20));
  EXPECT_EQ(completion.speculation.target_forwards, 0);
  EXPECT_EQ(completion.timings.prompt_tokens, 0);
  EXPECT_EQ(engine.accounting->counts().rounds(), 0);
}

TEST(Accounting, LearnsWhatPassesCost) {
  FakeEngine engine;
  engine.times.verify_ms = 3;
  EXPECT_EQ(engine.accounting->PlainStepUs(1), 0);
  engine.Run(Ask(10, 11));
  EXPECT_TRUE(engine.estimates->costs.known());
  EXPECT_GE(engine.accounting->PlainStepUs(1), 1);
  const std::vector<RowCost> costs = engine.accounting->PassCosts();
  ASSERT_FALSE(costs.empty());
  EXPECT_EQ(costs.back().rows, 5);
}

TEST(Accounting, ComparesPredictionsOnceCostsAreKnown) {
  FakeEngine engine;
  engine.times.verify_ms = 1e9;  // beside which the time that really passes is nothing
  engine.Run(Ask(10, 26));
  const auto& ratios = engine.accounting->counts().cost_model;
  // Five rounds; the first has nothing to go by.
  EXPECT_EQ(std::accumulate(ratios.counts.begin(), ratios.counts.end(), std::int64_t{0}), 4);
  EXPECT_NEAR(ratios.sum, 4, 0.01);
}

// Drafting takes as long as the pass, and is predicted to take what the fake drafter really takes:
// nothing beside that.
TEST(Accounting, ComparesPredictionsWithDraftingToo) {
  FakeEngine engine;
  engine.times = {.draft_ms = 1e9, .verify_ms = 1e9};
  engine.Run(Ask(10, 26));
  EXPECT_NEAR(engine.accounting->counts().cost_model.sum, 4 * 0.5, 0.01);
  FakeEngine predicts;
  predicts.times.verify_ms = 1e9;
  const Ticket ticket = predicts.Begin(Ask(10, 26));
  for (; !predicts.Plan().empty(); predicts.Observe()) {
    predicts.Propose();
    predicts.drafts.predicted_us = 3e12;  // three passes
    predicts.Verify(), predicts.Apply();
  }
  ASSERT_TRUE(predicts.admission->Take(ticket));
  EXPECT_NEAR(predicts.accounting->counts().cost_model.sum, 4 * (1 + 3), 0.01);
}

// One row has kernels of its own, which may take longer than those of two.
TEST(Accounting, PassCostsNeverFallWithTheRows) {
  FakeEngine engine;
  const std::vector<PassCost> costs = {
      {1, 0, {.median = 1000}}, {2, 0, {.median = 800}}, {5, 0, {.median = 1400}}};
  engine.estimates->costs.Start(costs);
  ASSERT_LT(engine.estimates->costs.PassUs(2, 0), engine.estimates->costs.PassUs(1, 0));
  const std::vector<RowCost> known = engine.accounting->PassCosts();
  ASSERT_EQ(known.size(), 3U);
  for (std::size_t i = 0; i < known.size(); ++i) {
    EXPECT_EQ(known[i].rows, costs[i].rows);
    EXPECT_DOUBLE_EQ(known[i].us, std::max(1000.0, costs[i].us.median));
  }
}

TEST(Accounting, ATextThatIsReadAgainIsNoPrompt) {
  FakeEngine::Options options;
  options.runner.n_blocks = 4;
  options.context = 128;
  FakeEngine engine(options);
  const Ticket one = engine.Begin(Ask(30, 60, 1)), two = engine.Begin(Ask(30, 60, 2));
  while (engine.Step()) continue;
  const Completion a = *engine.admission->Take(one), b = *engine.admission->Take(two);
  ASSERT_GT(b.timings.preemptions, 0);
  EXPECT_EQ(a.timings.prompt_tokens, 30);
  EXPECT_EQ(b.timings.prompt_tokens, 30);
  EXPECT_EQ(b.timings.decoded_tokens, 59);
}

}  // namespace
}  // namespace foretoken::engine
