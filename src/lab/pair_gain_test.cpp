// SPDX-License-Identifier: Apache-2.0
#include "lab/pair_gain.h"

#include <gtest/gtest.h>

#include <tuple>

namespace foretoken::lab {
namespace {

// Passes 100, 110, 120, ... microseconds.
RoundPrices Cheap(double draft) {
  RoundPrices prices{.pass = {}, .draft = draft, .rest = 0, .plain = 100};
  for (int rows = 1; rows <= 9; ++rows) prices.pass[rows] = 90 + 10 * rows;
  return prices;
}

// Every round drafts.
DraftShares Always(std::vector<double> gained) {
  return {std::vector<double>(gained.size(), 1.0), std::move(gained)};
}

TEST(RoundPrices, FollowLinesBetweenAndBeyondWhatWasMeasured) {
  const RoundPrices prices{.pass = {{1, 100}, {4, 130}, {8, 210}}};
  EXPECT_DOUBLE_EQ(prices.Pass(1), 100);
  EXPECT_DOUBLE_EQ(prices.Pass(3), 120);
  EXPECT_DOUBLE_EQ(prices.Pass(6), 170);
  EXPECT_DOUBLE_EQ(prices.Pass(10), 250);
  EXPECT_DOUBLE_EQ((RoundPrices{.pass = {{1, 100}}}).Pass(5), 100);
}

Measurements Measured(const std::vector<std::tuple<int, int, double>>& costs) {
  Measurements measured;
  for (const auto& [context, rows, us] : costs)
    measured.target.push_back({rows, context, {us, us, us}});
  return measured;
}

TEST(RoundPrices, NeverFallWithMoreRows) {
  const auto passes =
      PassesOf(Measured({{0, 1, 180}, {0, 2, 160}, {0, 3, 190}, {0, 4, 170}, {9, 1, 50}}), 0);
  EXPECT_EQ(passes, (std::map<int, double>{{1, 160}, {2, 160}, {3, 170}, {4, 170}}));
}

// In the texts a pass of one row takes half as long again as when nothing else runs in between, and
// one of three rows twice as long.
TEST(RoundPrices, AreThoseOfRealRounds) {
  PairRounds rounds;
  SpeculationStats &plain = rounds.plain, &drafting = rounds.longest, &one = rounds.shortest;
  plain.rounds = 100, plain.k_histogram = {100}, plain.verify_ms = 15, plain.overhead_ms = 1;
  drafting.rounds = 40, drafting.k_histogram = {0, 0, 40};
  drafting.verify_ms = 9.6, drafting.overhead_ms = 0.8;
  drafting.draft_rounds = 40, drafting.drafted = 80, drafting.draft_ms = 5;
  drafting.draft_prompt_ms = 1;
  one.rounds = 50, one.k_histogram = {0, 50}, one.verify_ms = 8.25;
  one.draft_rounds = one.drafted = 50, one.draft_ms = 3.5;
  const RoundPrices prices =
      PricesOf(Measured({{0, 1, 100}, {0, 2, 110}, {0, 3, 120}, {0, 5, 150}}), 0, rounds);
  EXPECT_DOUBLE_EQ(prices.Pass(1), 150);
  EXPECT_DOUBLE_EQ(prices.Pass(2), 165);
  EXPECT_DOUBLE_EQ(prices.Pass(3), 240);
  EXPECT_DOUBLE_EQ(prices.Pass(5), 300);
  EXPECT_DOUBLE_EQ(prices.plain, 160);
  EXPECT_DOUBLE_EQ(prices.rest, 20);
  EXPECT_DOUBLE_EQ(prices.draft, 30);  // 70 for one, 100 for two
  EXPECT_DOUBLE_EQ(prices.begin, 40);
}

// A drafter whose passes take 60 whatever they draft: one more token costs nothing, a round 60.
TEST(DraftPrice, IsThatOfAWholeRoundWhereDraftsAreMadeAtOnce) {
  PairRounds rounds;
  rounds.plain.rounds = 10, rounds.plain.verify_ms = 1;
  rounds.shortest.rounds = rounds.shortest.draft_rounds = rounds.shortest.drafted = 10;
  rounds.shortest.draft_ms = 0.6;
  rounds.longest = rounds.shortest;
  rounds.longest.drafted = 70;
  const RoundPrices prices = PricesOf(Measured({{0, 1, 100}, {0, 8, 150}}), 0, rounds);
  EXPECT_DOUBLE_EQ(DraftPriceOf(prices, rounds.longest, false), 0);
  EXPECT_DOUBLE_EQ(DraftPriceOf(prices, rounds.longest, true), 60);
  rounds.longest.draft_ms = 4.2;  // one pass for each
  const RoundPrices chain = PricesOf(Measured({{0, 1, 100}, {0, 8, 150}}), 0, rounds);
  EXPECT_DOUBLE_EQ(DraftPriceOf(chain, rounds.longest, false), 60);
}

TEST(Speedup, CountsTokensOverTime) {
  const DraftShares shares = Always({0.8, 0.5});
  EXPECT_DOUBLE_EQ(Speedup(Cheap(5), shares, 0), 1);
  EXPECT_DOUBLE_EQ(Speedup(Cheap(5), shares, 1), 1.8 * 100 / 115);
  EXPECT_DOUBLE_EQ(Speedup(Cheap(5), shares, 2), 2.3 * 100 / 130);
  RoundPrices prices = Cheap(5);
  prices.rest = 20, prices.plain = 110;
  EXPECT_DOUBLE_EQ(Speedup(prices, shares, 2), 2.3 * 110 / 150);
}

// A lookup that has a draft in 4 of 10 rounds, and then is mostly right: by survival alone it would
// promise a speed-up of 3.
TEST(Speedup, CountsRoundsWithoutDrafts) {
  SpeculationStats stats;
  stats.rounds = 10, stats.draft_rounds = 4, stats.drafted = 11, stats.accepted = 9;
  stats.drafted_per_position = {4, 4, 3};
  stats.verified_per_position = {4, 4, 2};
  stats.accepted_per_position = {4, 3, 2};
  const DraftShares shares = SharesOf(stats, 3);
  EXPECT_EQ(shares.drafted, (std::vector<double>{0.4, 0.4, 0.3}));
  EXPECT_EQ(shares.gained, (std::vector<double>{0.4, 0.3, 0.2}));
  // 19 tokens in 10 rounds: 6 of one row, 1 of three, 3 of four.
  EXPECT_DOUBLE_EQ(Speedup(Cheap(0), shares, 3), 1.9 * 1000 / (6 * 100 + 120 + 3 * 130));
  EXPECT_GT(Speedup(Cheap(0), Always(SurvivalOf(stats, 3)), 3), 2.5);
  EXPECT_EQ(SharesOf(SpeculationStats(), 3).most(), 0);
}

// For the length that ran, the estimate is the measured speed-up.
TEST(Speedup, AgreesWithTheRunThatItIsMadeFrom) {
  PairRounds rounds;
  SpeculationStats &plain = rounds.plain, &drafting = rounds.longest;
  plain.rounds = 50, plain.k_histogram = {50}, plain.verify_ms = 6, plain.overhead_ms = 0.5;
  drafting.rounds = 20, drafting.k_histogram = {5, 3, 12}, drafting.drafted = 27;
  drafting.accepted = 17, drafting.drafted_per_position = {15, 12};
  drafting.verified_per_position = {15, 11}, drafting.accepted_per_position = {11, 6};
  drafting.verify_ms = 3.1, drafting.draft_ms = 0.7, drafting.overhead_ms = 0.4;
  drafting.draft_rounds = 15;
  const Measurements measured = Measured({{0, 1, 100}, {0, 2, 105}, {0, 3, 118}});
  const RoundPrices prices = PricesOf(measured, 0, rounds);
  const double us = 1000 * (3.1 + 0.7 + 0.4), tokens = 20 + 17;
  EXPECT_NEAR(Speedup(prices, SharesOf(drafting, 2), 2), tokens * 130 / us,
              0.05 * tokens * 130 / us);
}

// Prices of different moments may promise what no run reached.
TEST(Speedup, IsTheMeasuredOneWhereItWasMeasured) {
  for (const DraftShares& shares :
       {Always({0.8, 0.6, 0.4, 0.3}), DraftShares{{0.5, 0.5, 0.4, 0.3}, {0.45, 0.4, 0.3, 0.2}}}) {
    RoundPrices prices = Cheap(5);
    prices.rest = 3;
    const double estimate = Speedup(prices, shares, 2);
    Agree({.shortest = 1.1, .longest = 1.05}, shares, prices);
    EXPECT_NEAR(Speedup(prices, shares, 1), 1.1, 1e-9);
    EXPECT_NEAR(Speedup(prices, shares, 4), 1.05, 1e-9);
    EXPECT_LT(Speedup(prices, shares, 2), estimate);
    EXPECT_DOUBLE_EQ(prices.Pass(1), 100);  // plain decoding's
  }
  const DraftShares one = Always({0.8});
  RoundPrices prices = Cheap(5);
  Agree({.shortest = 9, .longest = 1.2}, one, prices);
  EXPECT_NEAR(Speedup(prices, one, 1), 1.2, 1e-9);
}

TEST(Speedup, ThatNoPriceExplainsLeavesPassesPositiveAndRising) {
  RoundPrices prices = Cheap(5);
  Agree({.shortest = 90, .longest = 0.01}, Always({0.8, 0.6}), prices);
  for (int rows = 1; rows < 9; ++rows) {
    EXPECT_GT(prices.Pass(rows), 0);
    EXPECT_LE(prices.Pass(rows), prices.Pass(rows + 1));
  }
  const RoundPrices before = Cheap(5);
  prices = before;
  Agree({.shortest = 2, .longest = 2}, {}, prices);
  EXPECT_EQ(prices.pass, before.pass);
}

TEST(BestLength, IsPlainDecodingWhereDraftsAreDearOrWrong) {
  const DraftShares good = Always({0.9, 0.8, 0.7, 0.1});
  EXPECT_EQ(BestLengthOf(Cheap(5), good).k, 3);
  EXPECT_EQ(BestLengthOf(Cheap(200), good).k, 0);
  EXPECT_EQ(BestLengthOf(Cheap(200), good).speedup, 1);
  EXPECT_EQ(BestLengthOf(Cheap(5), Always({0.1, 0.01})).k, 0);
  EXPECT_EQ(BestLengthOf(Cheap(5), {}).k, 0);
}

TEST(BreakEven, IsWhereOneDraftJustPays) {
  // K = 1 pays once 1 + a > 115 / 100; later drafts only help where a is large.
  EXPECT_NEAR(BreakEven(Cheap(5), 1).value(), 0.15, 1e-9);
  EXPECT_NEAR(BreakEven(Cheap(5), 8).value(), 0.15, 1e-9);
  EXPECT_FALSE(BreakEven(Cheap(100), 1));  // 2 tokens for 210
  EXPECT_FALSE(BreakEven(Cheap(100), 8));
  EXPECT_TRUE(BreakEven(Cheap(50), 8));
}

TEST(Survival, MultipliesWhatWasVerified) {
  SpeculationStats stats;
  stats.verified_per_position = {10, 8, 4, 0};
  stats.accepted_per_position = {8, 4, 2, 0};
  const std::vector<double> survival = SurvivalOf(stats, 5);
  const std::vector<double> expected = {0.8, 0.4, 0.2, 0.1, 0.05};
  ASSERT_EQ(survival.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(survival[i], expected[i], 1e-12);
  EXPECT_TRUE(SurvivalOf({}, 5).empty());
}

}  // namespace
}  // namespace foretoken::lab
