// SPDX-License-Identifier: Apache-2.0
#include "cli/pair_gain.h"

#include <gtest/gtest.h>

#include <tuple>

namespace foretoken::cli {
namespace {

// Passes 100, 110, 120, ... microseconds.
RoundPrices Cheap(double draft) {
  RoundPrices prices{.pass = {}, .draft = draft, .rest = 0};
  for (int rows = 1; rows <= 9; ++rows) prices.pass[rows] = 90 + 10 * rows;
  return prices;
}

TEST(RoundPrices, FollowLinesBetweenAndBeyondWhatWasMeasured) {
  const RoundPrices prices{.pass = {{1, 100}, {4, 130}, {8, 210}}, .draft = 0, .rest = 0};
  EXPECT_DOUBLE_EQ(prices.Pass(1), 100);
  EXPECT_DOUBLE_EQ(prices.Pass(3), 120);
  EXPECT_DOUBLE_EQ(prices.Pass(6), 170);
  EXPECT_DOUBLE_EQ(prices.Pass(10), 250);
  EXPECT_DOUBLE_EQ((RoundPrices{.pass = {{1, 100}}, .draft = 0, .rest = 0}).Pass(5), 100);
}

TEST(RoundPrices, NeverFallWithMoreRows) {
  Measurements measured;
  for (const auto& [context, rows, us] : std::vector<std::tuple<int, int, double>>{
           {0, 1, 180}, {0, 2, 160}, {0, 3, 190}, {0, 4, 170}, {9, 1, 50}})
    measured.target.push_back({rows, context, {us, us, us}});
  const RoundPrices prices = PricesOf(measured, 0, 3, 2);
  EXPECT_EQ(prices.pass, (std::map<int, double>{{1, 160}, {2, 160}, {3, 170}, {4, 170}}));
  EXPECT_EQ(prices.draft, 3);
  EXPECT_EQ(prices.rest, 2);
}

TEST(Speedup, CountsTokensOverTime) {
  const std::vector<double> survival = {0.8, 0.5};
  EXPECT_DOUBLE_EQ(Speedup(Cheap(5), survival, 0), 1);
  EXPECT_DOUBLE_EQ(Speedup(Cheap(5), survival, 1), 1.8 * 100 / 115);
  EXPECT_DOUBLE_EQ(Speedup(Cheap(5), survival, 2), 2.3 * 100 / 130);
  RoundPrices prices = Cheap(5);
  prices.rest = 20;
  EXPECT_DOUBLE_EQ(Speedup(prices, survival, 2), 2.3 * 120 / 150);
}

TEST(BestLength, IsPlainDecodingWhereDraftsAreDearOrWrong) {
  const std::vector<double> good = {0.9, 0.8, 0.7, 0.1};
  EXPECT_EQ(BestLengthOf(Cheap(5), good).k, 3);
  EXPECT_EQ(BestLengthOf(Cheap(200), good).k, 0);
  EXPECT_EQ(BestLengthOf(Cheap(200), good).speedup, 1);
  EXPECT_EQ(BestLengthOf(Cheap(5), std::vector<double>{0.1, 0.01}).k, 0);
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

TEST(Survival, MultipliesWhatWasJudged) {
  SpeculationStats stats;
  stats.judged_per_position = {10, 8, 4, 0};
  stats.accepted_per_position = {8, 4, 2, 0};
  const std::vector<double> survival = SurvivalOf(stats, 5);
  const std::vector<double> expected = {0.8, 0.4, 0.2, 0.1, 0.05};
  ASSERT_EQ(survival.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(survival[i], expected[i], 1e-12);
  EXPECT_TRUE(SurvivalOf({}, 5).empty());
}

}  // namespace
}  // namespace foretoken::cli
