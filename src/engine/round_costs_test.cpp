// SPDX-License-Identifier: Apache-2.0
#include "engine/round_costs.h"

#include <gtest/gtest.h>

namespace foretoken::engine {
namespace {

TEST(RoundCosts, KnowsNothingAtFirst) {
  const RoundCosts costs(16, 0.2);
  EXPECT_FALSE(costs.known());
  EXPECT_EQ(costs.PassUs(3), 0);
  EXPECT_EQ(costs.TrustedRows(), 0);
}

TEST(RoundCosts, TakesTheFirstReadingWholeAndLaterOnesSlowly) {
  RoundCosts costs(16, 0.2);
  costs.SeePass(1, 100);
  EXPECT_DOUBLE_EQ(costs.PassUs(1), 100);
  costs.SeePass(1, 110);
  EXPECT_DOUBLE_EQ(costs.PassUs(1), 101);
  costs.SeePass(1, 1e9);  // a pass that lost its core counts as twice as slow
  EXPECT_DOUBLE_EQ(costs.PassUs(1), 0.9 * 101 + 0.1 * 202);
}

TEST(RoundCosts, ReadsBetweenWhatItSaw) {
  RoundCosts costs(16, 0.2);
  costs.SeePass(1, 100);
  costs.SeePass(5, 180);
  EXPECT_DOUBLE_EQ(costs.PassUs(3), 140);
  EXPECT_DOUBLE_EQ(costs.PassUs(5), 180);
}

TEST(RoundCosts, NeverFallsWithRows) {
  RoundCosts costs(16, 0.2);
  costs.SeePass(1, 100);
  costs.SeePass(2, 80);  // noise
  costs.SeePass(6, 90);
  for (int rows = 2; rows <= 20; ++rows)
    EXPECT_GE(costs.PassUs(rows), costs.PassUs(rows - 1)) << rows;
}

TEST(RoundCosts, TakesRowsItNeverSawForDearAndTrustsOnlyTwiceWhatItSaw) {
  RoundCosts costs(16, 0.2);
  costs.SeePass(1, 100);
  EXPECT_EQ(costs.TrustedRows(), 2);
  EXPECT_DOUBLE_EQ(costs.PassUs(2), 125);
  costs.SeePass(4, 130);
  EXPECT_EQ(costs.TrustedRows(), 8);
  EXPECT_DOUBLE_EQ(costs.PassUs(6), 130 + 2 * (1.2 * 10 + 2));
}

TEST(RoundCosts, GuessesADraftUntilItSeesOne) {
  RoundCosts costs(16, 0.2);
  costs.SeePass(1, 100);
  EXPECT_DOUBLE_EQ(costs.DraftUs(), 20);
  costs.SeeDrafts(4, 60);
  EXPECT_DOUBLE_EQ(costs.DraftUs(), 15);
}

TEST(RoundCosts, IgnoresWhatCannotBe) {
  RoundCosts costs(4, 0.2);
  costs.SeePass(0, 10);
  costs.SeePass(5, 10);
  costs.SeePass(2, -1);
  costs.SeeDrafts(0, 10);
  EXPECT_FALSE(costs.known());
}

}  // namespace
}  // namespace foretoken::engine
