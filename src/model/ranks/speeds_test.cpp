// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/speeds.h"

#include <gtest/gtest.h>

#include "comm/thread_ranks_testing.h"
#include "kernels/dispatch.h"

namespace foretoken::model {
namespace {

using Shares = std::vector<int>;

Shares SharesAt(std::vector<double> speeds) {
  return SharesOf(speeds);
}

TEST(SharesOf, EqualRanksHaveEqualShares) {
  EXPECT_EQ(SharesAt({3e9}), Shares({10}));
  EXPECT_EQ(SharesAt({20e9, 20e9, 20e9}), Shares({10, 10, 10}));
}

TEST(SharesOf, SpeedsWithinTenPercentAreEqual) {
  EXPECT_EQ(SharesAt({20e9, 18.3e9}), Shares({10, 10}));
  EXPECT_EQ(SharesAt({18.3e9, 20e9, 19e9}), Shares({10, 10, 10}));
  EXPECT_EQ(SharesAt({20e9, 17.9e9}), Shares({10, 9}));
}

TEST(SharesOf, SlowerRanksHaveSmallerShares) {
  EXPECT_EQ(SharesAt({10e9, 20e9}), Shares({5, 10}));
  EXPECT_EQ(SharesAt({40e9, 10e9, 20e9, 9.5e9}), Shares({10, 2, 5, 2}));
}

TEST(SharesOf, EachRankHasAShare) {
  EXPECT_EQ(SharesAt({1, 1e12}), Shares({1, 10}));
}

RankSpeeds Even(int n_ranks, double gather_us) {
  return {.bytes_per_second = std::vector<double>(static_cast<std::size_t>(n_ranks), 20e9),
          .gather_us = gather_us};
}

TEST(WorthDividing, OneRankDividesNothing) {
  EXPECT_FALSE(WorthDividing({.bytes = 1 << 30, .n_layers = 16}, Even(1, 0)));
}

// 135 MB in 30 layers: 6.75 ms alone; 122 gathers.
TEST(WorthDividing, SmallNetworksOnlyWhereGathersAreFast) {
  const PassSize small = {.bytes = 135'000'000, .n_layers = 30};
  EXPECT_TRUE(WorthDividing(small, Even(2, 20)));   // 3.4 ms + 2.4 ms
  EXPECT_FALSE(WorthDividing(small, Even(2, 30)));  // 3.4 ms + 3.7 ms
  EXPECT_TRUE(WorthDividing(small, Even(4, 30)));   // 1.7 ms + 3.7 ms
  EXPECT_FALSE(WorthDividing(small, Even(4, 100)));
}

// 4 GB in 32 layers: 200 ms alone; 130 gathers.
TEST(WorthDividing, LargeNetworksEvenWhereGathersAreSlow) {
  const PassSize large = {.bytes = 4'000'000'000, .n_layers = 32};
  EXPECT_TRUE(WorthDividing(large, Even(2, 500)));
  EXPECT_FALSE(WorthDividing(large, Even(2, 1000)));
}

TEST(WorthDividing, ComparesWithTheSpeedOfRank0) {
  const PassSize size = {.bytes = 1'000'000'000, .n_layers = 24};
  const RankSpeeds slow_help = {.bytes_per_second = {40e9, 4e9}, .gather_us = 30},
                   fast_help = {.bytes_per_second = {4e9, 40e9}, .gather_us = 30};
  EXPECT_FALSE(WorthDividing(size, slow_help));  // 22.7 ms + 2.9 ms, not 25 ms
  EXPECT_TRUE(WorthDividing(size, fast_help));
}

TEST(MeasureSpeeds, AllRanksLearnTheSame) {
  const kernels::Kernels& kernels = *kernels::KernelsFromEnvironment().value();
  std::vector<RankSpeeds> measured(2);
  comm::RunAsRanks(2, [&](comm::Ranks& ranks) {
    ThreadPool pool(1);
    auto speeds = MeasureSpeeds(ranks, kernels, pool);
    ASSERT_TRUE(speeds);
    measured[static_cast<std::size_t>(ranks.rank())] = *speeds;
  });
  EXPECT_EQ(measured[0].bytes_per_second, measured[1].bytes_per_second);
  EXPECT_EQ(measured[0].gather_us, measured[1].gather_us);
  ASSERT_EQ(measured[0].n_ranks(), 2);
  EXPECT_GT(measured[0].bytes_per_second[0], 1e6);
  EXPECT_EQ(measured[0].bytes_per_second[0], measured[0].bytes_per_second[1]) << "on one machine";
}

TEST(MeasureSpeeds, OneRankMeasuresNothing) {
  comm::Alone alone;
  ThreadPool pool(1);
  const auto speeds = MeasureSpeeds(alone, *kernels::KernelsFromEnvironment().value(), pool);
  ASSERT_TRUE(speeds);
  EXPECT_EQ(SharesOf(speeds->bytes_per_second), Shares({10}));
}

}  // namespace
}  // namespace foretoken::model
