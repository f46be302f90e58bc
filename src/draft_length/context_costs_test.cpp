// SPDX-License-Identifier: Apache-2.0
#include "draft_length/context_costs.h"

#include <gtest/gtest.h>

#include <random>

namespace foretoken::draft_length {
namespace {

double Price(const ContextPass& pass) {
  return pass.context * (0.02 * pass.sequences + 0.005 * pass.rows);
}

// Tells it the pass, with a deviation; the rest of the pass is known.
double Tell(ContextCosts& costs, const ContextPass& pass, double noise_us = 2,
            double deviation = 0) {
  return costs.Learn(pass, Price(pass) + deviation - costs.Us(pass), noise_us);
}

TEST(ContextCosts, AreNothingUntilReadingsTell) {
  ContextCosts costs;
  costs.Start(100);
  EXPECT_EQ(costs.Us({1, 1, 16'384}), 0);
  EXPECT_NEAR(costs.DoubtUs({1, 1, 16'384}), 224, 1);  // sqrt(200^2 + 100^2)
  EXPECT_EQ(costs.DoubtUs({1, 1, 0}), 0);
}

TEST(ContextCosts, AReadingOfADoubtfulContextIsBelieved) {
  ContextCosts costs;
  costs.Start(100);
  EXPECT_NEAR(Tell(costs, {2, 1, 16'000}), Price({2, 1, 16'000}), 2);
  EXPECT_LT(costs.DoubtUs({2, 1, 16'000}), 5);
  EXPECT_GT(costs.DoubtUs({1, 1, 16'000}), 30);
  EXPECT_GT(costs.DoubtUs({8, 1, 16'000}), 100);
}

TEST(ContextCosts, TwoLengthsTellBothPrices) {
  ContextCosts costs;
  costs.Start(100);
  for (const int rows : {2, 1}) Tell(costs, {rows, 1, 16'000});
  for (const int rows : {1, 4, 8})
    EXPECT_NEAR(costs.Us({rows, 1, 16'000}), Price({rows, 1, 16'000}), 5) << rows;
  EXPECT_NEAR(costs.Us({4, 4, 1'000}), Price({4, 4, 1'000}), 5);
}

TEST(ContextCosts, AShortContextTellsLittle) {
  ContextCosts costs;
  costs.Start(100);
  EXPECT_LT(costs.Learn({1, 1, 64}, 50, 5), 2);
}

// Readings scatter by a tenth of a pass. What was learned then stays, and so does the doubt's size.
TEST(ContextCosts, ReadingsThatScatterGiveTheirMean) {
  ContextCosts costs;
  costs.Start(100);
  std::mt19937 random(7);
  std::normal_distribution<double> noise(0, 40);
  for (int i = 0; i < 400; ++i) Tell(costs, {1 + i % 3, 1, 16'000}, 40, noise(random));
  for (const int rows : {1, 3})
    EXPECT_NEAR(costs.Us({rows, 1, 16'000}), Price({rows, 1, 16'000}), 30) << rows;
  EXPECT_LT(costs.DoubtUs({1, 1, 16'000}), 30);
}

TEST(ContextCosts, NoPriceIsNegative) {
  ContextCosts costs;
  costs.Start(100);
  costs.Learn({8, 1, 16'000}, 100, 2);
  costs.Learn({1, 1, 16'000}, 200, 2);  // one row takes more than eight
  EXPECT_GE(costs.Us({8, 1, 16'000}), costs.Us({1, 1, 16'000}));
  for (int i = 0; i < 10; ++i) costs.Learn({2, 1, 16'000}, -1000, 2);
  for (const int rows : {1, 8}) EXPECT_GE(costs.Us({rows, 1, 16'000}), 0);
}

// The smaller the model, the more a position costs beside its weights.
TEST(ContextCosts, AMeasuredPriceMayBeFarBeyondTheScale) {
  ContextCosts costs;
  costs.Start(1);
  costs.Measured({17, 1, 2048}, 40, 2);
  EXPECT_NEAR(costs.Us({17, 1, 2048}), 40, 2);
}

}  // namespace
}  // namespace foretoken::draft_length
