// SPDX-License-Identifier: Apache-2.0
#include "foretoken/adaptive_lookahead.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/failure_testing.h"

namespace foretoken {
namespace {

AdaptiveLookahead Default() {
  return AdaptiveLookahead::Create({}).value();
}

TEST(AdaptiveLookahead, GrowsByOneEveryFiveStepsWhereAllIsAccepted) {
  AdaptiveLookahead l = Default();
  for (int step = 1; step <= 60; ++step) {
    l.Observe(l.lookahead(), l.lookahead());
    EXPECT_EQ(l.lookahead(), std::min(12, 5 + step / 5)) << "step " << step;
  }
  EXPECT_EQ(l.observations(), 60);
  EXPECT_EQ(l.updates(), 7);
}

TEST(AdaptiveLookahead, FallsToTheLeastWhereNothingIsAccepted) {
  AdaptiveLookahead l = Default();
  for (int step = 1; step <= 12; ++step) {
    l.Observe(l.lookahead(), 0);
    EXPECT_EQ(l.lookahead(), step < 5 ? 5 : 2) << "step " << step;
  }
  EXPECT_EQ(l.updates(), 1);
  EXPECT_EQ(l.mean_accepted(), 0);
}

TEST(AdaptiveLookahead, TakesTheFirstObservationWholeAndWeighsLaterOnes) {
  AdaptiveLookahead l = Default();
  EXPECT_EQ(l.mean_accepted(), 0);
  l.Observe(5, 3);
  EXPECT_DOUBLE_EQ(l.mean_accepted(), 3);
  l.Observe(5, 5);
  EXPECT_DOUBLE_EQ(l.mean_accepted(), 0.2 * 5 + 0.8 * 3);
}

TEST(AdaptiveLookahead, RoundsHalvesAwayFromZero) {
  auto l = AdaptiveLookahead::Create({.initial = 1, .min = 1, .alpha = 0.5, .cooldown_steps = 0});
  l->Observe(4, 1);
  EXPECT_EQ(l->lookahead(), 2);
  l->Observe(4, 2);  // the mean is 1.5, so 2.5 drafts are wanted
  EXPECT_EQ(l->lookahead(), 3);
}

TEST(AdaptiveLookahead, CountsNoMoreAcceptedThanProposed) {
  AdaptiveLookahead l = Default();
  l.Observe(2, 9);
  EXPECT_EQ(l.mean_accepted(), 2);
  l.Reset();
  l.Observe(-1, -4);
  EXPECT_EQ(l.mean_accepted(), 0);
}

TEST(AdaptiveLookahead, StartsAnewAfterReset) {
  AdaptiveLookahead l = Default();
  for (int i = 0; i < 20; ++i) l.Observe(12, 12);
  l.Reset();
  EXPECT_EQ(l.lookahead(), 5);
  EXPECT_EQ(l.observations(), 0);
  EXPECT_EQ(l.updates(), 0);
  for (int i = 0; i < 4; ++i) l.Observe(5, 5);
  EXPECT_EQ(l.lookahead(), 5) << "the pause starts anew, too";
}

TEST(AdaptiveLookahead, RefusesWhatIsOutOfRangeByName) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<AdaptiveLookaheadConfig, const char*> cases[] = {
      {{.min = 0}, "min"},         {{.min = 6, .max = 5}, "max"},
      {{.initial = 1}, "initial"}, {{.initial = 13}, "initial"},
      {{.alpha = -0.1}, "alpha"},  {{.alpha = 1.1}, "alpha"},
      {{.alpha = nan}, "alpha"},   {{.cooldown_steps = -1}, "cooldown"}};
  for (const auto& [config, name] : cases)
    EXPECT_TRUE(Fails(AdaptiveLookahead::Create(config), ErrorCode::kInvalidArgument, name));
}

}  // namespace
}  // namespace foretoken
