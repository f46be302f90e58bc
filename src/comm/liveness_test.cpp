// SPDX-License-Identifier: Apache-2.0
#include "comm/liveness.h"

#include <gtest/gtest.h>

namespace foretoken::comm {
namespace {

using std::chrono::seconds;

constexpr Liveness::Clock::time_point kBegin{};

// Asks each second from `from` to `to`, both included, and returns the last answer.
std::optional<int> Ask(Liveness& liveness, int from, int to) {
  std::optional<int> lost;
  for (int s = from; s <= to; ++s) lost = liveness.Lost(kBegin + seconds(s));
  return lost;
}

TEST(Liveness, ARankIsLostAfterTheTimeOfSilence) {
  Liveness liveness({1, 2}, seconds(6), kBegin);
  for (int s = 0; s <= 5; ++s) liveness.Hear(1, 1, kBegin + seconds(s));
  EXPECT_EQ(Ask(liveness, 0, 5), std::nullopt);
  EXPECT_EQ(Ask(liveness, 6, 6), 2);
}

TEST(Liveness, TheOneThatHasBeenSilentForLongestIsNamed) {
  Liveness liveness({1, 2, 3}, seconds(6), kBegin);
  liveness.Hear(1, 1, kBegin + seconds(2));
  liveness.Hear(3, 1, kBegin + seconds(1));
  EXPECT_EQ(Ask(liveness, 0, 9), 2);
}

TEST(Liveness, AProcessThatWasStoppedItselfBlamesNobody) {
  Liveness liveness({1}, seconds(6), kBegin);
  EXPECT_EQ(Ask(liveness, 0, 2), std::nullopt);
  EXPECT_EQ(liveness.Lost(kBegin + seconds(100)), std::nullopt);
  EXPECT_EQ(Ask(liveness, 101, 105), std::nullopt);
  EXPECT_EQ(Ask(liveness, 106, 106), 1);
}

TEST(Liveness, ShorterSilenceCountsAtOnce) {
  Liveness liveness({1}, seconds(60), kBegin);
  EXPECT_EQ(Ask(liveness, 0, 5), std::nullopt);
  liveness.SetSilence(seconds(3));
  EXPECT_EQ(Ask(liveness, 6, 6), 1);
}

TEST(Liveness, NamesTheRankThatHasBegunFewerCalls) {
  Liveness liveness({1, 2}, seconds(6), kBegin);
  liveness.Hear(1, 7, kBegin);
  liveness.Hear(2, 6, kBegin);
  EXPECT_EQ(liveness.Behind(6), std::nullopt);
  EXPECT_EQ(liveness.Behind(7), 2);
}

TEST(Liveness, NobodyIsWatchedAlone) {
  Liveness liveness({}, seconds(6), kBegin);
  EXPECT_EQ(Ask(liveness, 0, 100), std::nullopt);
  EXPECT_EQ(liveness.Behind(1), std::nullopt);
}

}  // namespace
}  // namespace foretoken::comm
