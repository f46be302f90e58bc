// SPDX-License-Identifier: Apache-2.0
#include "foretoken/tools/replay.h"

#include <gtest/gtest.h>

#include "draft_length/registry.h"
#include "trace/traced_costs.h"
#include "trace/traces_testing.h"

namespace foretoken::trace {
namespace {

ReplayTally MeasuredOf(const RunTrace& trace) {
  return MeasuredSettings(trace).front().tally;
}

void ExpectSameCounts(const ReplayTally& a, const ReplayTally& b) {
  EXPECT_EQ(a.rounds, b.rounds);
  EXPECT_EQ(a.draft_rounds, b.draft_rounds);
  EXPECT_EQ(a.drafted, b.drafted);
  EXPECT_EQ(a.accepted, b.accepted);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.k_histogram, b.k_histogram);
}

TEST(Replay, OfTheRecordedSettingGivesTheRecordedCounts) {
  for (const int k : {1, 2, 3, 4, 6, 8})
    for (const double right : {0.0, 0.3, 0.7, 0.95, 1.0}) {
      const RunTrace trace = TraceOf({.right = RightWith(right, 3)}, k);
      const auto replayed = Replay(trace, {.num_speculative_tokens = k});
      ASSERT_TRUE(replayed) << replayed.error().message;
      ExpectSameCounts(replayed->tally, MeasuredOf(trace));
      EXPECT_EQ(replayed->at_random, 0) << k << " " << right;
      ASSERT_TRUE(replayed->measured);
      EXPECT_NEAR(replayed->tally.us / MeasuredOf(trace).us, 1, 1e-9);
    }
}

TEST(Replay, StopsDraftingWhereTheDrafterKnewNothing) {
  const TracedWorld world{.right = RightWith(0.8, 5), .silent = RightWith(0.3, 6)};
  const RunTrace trace = TraceOf(world, 5);
  const auto replayed = Replay(trace, {.num_speculative_tokens = 5});
  ASSERT_TRUE(replayed);
  ExpectSameCounts(replayed->tally, MeasuredOf(trace));
  EXPECT_LT(replayed->tally.drafted, 4 * replayed->tally.rounds);  // the drafter was silent indeed
}

TEST(Replay, SmallerDraftsAreDecidedByRecordedVerdictsButForAFew) {
  const TracedWorld world{.right = RightWith(0.7, 11)};
  const auto replayed = Replay(TraceOf(world, 6), {.num_speculative_tokens = 2});
  ASSERT_TRUE(replayed);
  EXPECT_LT(static_cast<double>(replayed->at_random),
            0.1 * static_cast<double>(replayed->verified));
}

// Times with noise of up to 20 %, a context that costs, and a cost table of the machine at rest.
TEST(Replay, PredictsAnotherDraftLengthOfAWorldWithAKnownDistribution) {
  TracedWorld world{.right = RightWith(0.75, 21), .noise = 0.2, .tokens = 400};
  world.pass_us = [](int rows, int context) { return 1000 + 80 * (rows - 1) + 0.5 * context; };
  RunTrace trace = TraceOf(world, 4, 6);
  for (const int rows : {1, 2, 3, 5, 7, 9})
    trace.costs.push_back({rows, 0, 0.8 * (1000 + 80 * (rows - 1))});
  for (const int k : {0, 1, 2, 3, 6, 8}) {
    const double truth = MeasuredOf(TraceOf(world, k, 6)).tokens_per_second();
    const auto replayed = Replay(trace, {.num_speculative_tokens = k});
    ASSERT_TRUE(replayed);
    EXPECT_NEAR(replayed->tally.tokens_per_second() / truth, 1, 0.1) << "K " << k;
  }
}

// Control: what the test above measures can be missed. A trace of a better drafter predicts too
// much.
TEST(Replay, OfAnotherDrafterDoesNotPredict) {
  const TracedWorld world{.right = RightWith(0.5, 21), .tokens = 400},
      better{.right = RightWith(0.75, 22), .tokens = 400};
  const double truth = MeasuredOf(TraceOf(world, 6, 6)).tokens_per_second();
  const auto replayed = Replay(TraceOf(better, 4, 6), {.num_speculative_tokens = 6});
  ASSERT_TRUE(replayed);
  EXPECT_GT(replayed->tally.tokens_per_second() / truth, 1.1);
}

TEST(Replay, PredictsLongerDraftsOfTextsThatAreEasyInParts) {
  TracedWorld world{.right = {}, .tokens = 600};
  // Easy and hard stretches of 40 tokens: verdicts of neighbours depend on each other.
  world.right = [easy = RightWith(0.95, 1), hard = RightWith(0.3, 2)](int r, int p) {
    return p / 40 % 2 == 0 ? easy(r, p) : hard(r, p);
  };
  const double truth = MeasuredOf(TraceOf(world, 8, 6)).tokens_per_second();
  RunTrace trace = TraceOf(world, 4, 6);
  for (const int rows : {1, 5, 9}) trace.costs.push_back({rows, 0, 1000.0 + 100 * (rows - 1)});
  const auto replayed = Replay(trace, {.num_speculative_tokens = 8});
  ASSERT_TRUE(replayed);
  EXPECT_NEAR(replayed->tally.tokens_per_second() / truth, 1, 0.1);
}

// A round with 8 drafts costs what one with 2 does, but for the target's rows.
TEST(Replay, CountsTheDraftsOfOnePassOnce) {
  const TracedWorld world{
      .right = RightWith(0.9, 31), .draft_us = 600, .at_once = true, .tokens = 400};
  RunTrace trace = TraceOf(world, 4, 6);
  for (const int rows : {1, 5, 9}) trace.costs.push_back({rows, 0, 1000.0 + 100 * (rows - 1)});
  double best = 0;
  for (const int k : {1, 2, 4, 8}) {
    const double truth = MeasuredOf(TraceOf(world, k, 6)).tokens_per_second();
    const auto replayed = Replay(trace, {.num_speculative_tokens = k});
    ASSERT_TRUE(replayed);
    EXPECT_NEAR(replayed->tally.tokens_per_second() / truth, 1, 0.05) << "K " << k;
    best = std::max(best, truth);
  }
  const auto chosen = Replay(trace, {.num_speculative_tokens = 8, .controller = "cost-model"});
  ASSERT_TRUE(chosen);
  EXPECT_GT(chosen->tally.tokens_per_second(), 0.97 * best);
}

TEST(Replay, IsTheSameEachTime) {
  const RunTrace trace = TraceOf({.right = RightWith(0.8, 2)}, 3);
  for (const std::string_view name : NamesOf(AllControllers())) {
    const ReplayOptions options{.num_speculative_tokens = 8, .controller = std::string(name)};
    const auto a = Replay(trace, options), b = Replay(trace, options);
    ASSERT_TRUE(a && b) << name;
    ExpectSameCounts(a->tally, b->tally);
    EXPECT_EQ(a->tally.us, b->tally.us);
    EXPECT_EQ(a->tally.tokens, MeasuredOf(trace).tokens);
  }
}

TEST(Replay, CostModelIsNoSlowerThanPlainDecodingOnRecordedTexts) {
  for (const double right : {0.0, 0.2, 0.5, 0.9}) {
    const RunTrace trace = TraceOf({.right = RightWith(right, 4), .tokens = 500}, 4);
    const auto plain = Replay(trace, {.num_speculative_tokens = 0}),
               chosen = Replay(trace, {.num_speculative_tokens = 8, .controller = "cost-model"});
    ASSERT_TRUE(plain && chosen);
    EXPECT_GE(chosen->tally.tokens_per_second(), 0.97 * plain->tally.tokens_per_second()) << right;
  }
}

// Two requests in one pass: rows add up, and one time serves both.
TEST(Replay, PutsRequestsThatRanTogetherIntoOnePass) {
  RunTrace one = TraceOf({.right = RightWith(0.6, 8), .tokens = 100}, 3, 1);
  RunTrace both = one;
  both.header.max_sequences = 2;
  both.requests.push_back(one.requests.front());
  both.rounds.clear();
  for (TracedRound round : one.rounds) {
    if (!round.prefill) round.others = 1, round.rows *= 2;
    both.rounds.push_back(round);
    round.request = 1;
    both.rounds.push_back(round);
  }
  const auto replayed = Replay(both, {.num_speculative_tokens = 3});
  ASSERT_TRUE(replayed);
  ExpectSameCounts(replayed->tally, MeasuredOf(both));
  EXPECT_EQ(replayed->tally.tokens, 2 * MeasuredOf(one).tokens);
  EXPECT_NEAR(replayed->tally.us, MeasuredOf(one).us, 1e-6 * replayed->tally.us);
}

TEST(Replay, MeasuresEachSettingApart) {
  const TracedWorld world{.right = RightWith(0.6, 9), .tokens = 50};
  RunTrace trace = TraceOf(world, 4, 2);
  RunWorld(world, 0, 0, trace);
  RunWorld(world, 2, 0, trace);
  const auto settings = MeasuredSettings(trace);
  ASSERT_EQ(settings.size(), 3u);
  EXPECT_EQ(settings[0].requests, 2);
  EXPECT_EQ(settings[1].method, "none");
  EXPECT_EQ(settings[1].tally.rounds, 49);
  const auto replayed = Replay(trace, {.num_speculative_tokens = 0});
  ASSERT_TRUE(replayed && replayed->measured);
  EXPECT_EQ(replayed->measured->tokens, 49);
  EXPECT_EQ(replayed->tally.tokens, 3 * 49);  // of those that drafted
}

TEST(Replay, RefusesWhatItCannotReplay) {
  const RunTrace trace = TraceOf({.right = RightWith(0.6, 9), .tokens = 20}, 4, 1);
  const auto why = [](const RunTrace& t, const ReplayOptions& options) {
    const auto result = Replay(t, options);
    return result ? "" : result.error().message;
  };
  EXPECT_NE(why(trace, {.num_speculative_tokens = 65}).find("use 0 to 64"), std::string::npos);
  EXPECT_NE(why(trace, {.controller = "clever"}).find("cost-model"), std::string::npos);
  EXPECT_NE(why(trace, {.controller = "ewma", .adaptive_lookahead = {.min = 0}}), "");
  EXPECT_NE(why(TraceOf({.right = RightWith(1, 1), .tokens = 20}, 0, 1), {}), "");
}

TEST(RisingCurve, AveragesWhatFallsAndGoesOnStraight) {
  const RisingCurve curve({{1, 10, 1}, {2, 30, 1}, {3, 20, 1}, {5, 45, 1}});
  EXPECT_EQ(curve.At(0), 10);
  EXPECT_EQ(curve.At(2.5), 25);  // the mean of the two that fall
  EXPECT_NEAR(curve.At(5), 45, 1e-12);
  EXPECT_NEAR(curve.At(9), 45 + 4 * 35.0 / 4, 1e-12);
  for (double x = 0, last = 0; x < 12; x += 0.1) {
    EXPECT_GE(curve.At(x), last);
    last = curve.At(x);
  }
  EXPECT_EQ(RisingCurve().At(3), 0);
  EXPECT_EQ(RisingCurve({{4, 7, 1}}).At(9), 7);
}

}  // namespace
}  // namespace foretoken::trace
