// SPDX-License-Identifier: Apache-2.0
#include "loader/ranks/cluster.h"

#include <gtest/gtest.h>

#include "comm/thread_ranks_testing.h"
#include "kernels/dispatch.h"
#include "loader/ranks/cluster_meter.h"

namespace foretoken {
namespace {

ClusterFacts FactsOf(std::size_t n) {
  ClusterFacts facts;
  facts.ranks.resize(n);
  facts.gathers = {{.bytes = 100, .us = {.median = 10}}, {.bytes = 1100, .us = {.median = 20}}};
  return facts;
}

TEST(ClusterFacts, GatherTimesLieOnStraightLinesBetweenTheMeasuredSizes) {
  const ClusterFacts facts = FactsOf(2);
  EXPECT_DOUBLE_EQ(facts.GatherUs(1), 10);
  EXPECT_DOUBLE_EQ(facts.GatherUs(100), 10);
  EXPECT_DOUBLE_EQ(facts.GatherUs(600), 15);
  EXPECT_DOUBLE_EQ(facts.GatherUs(2100), 30);
  EXPECT_DOUBLE_EQ(ClusterFacts().GatherUs(100), 0);
}

TEST(ClusterFacts, ThePassOfAllRanksIsTheMeasuredOne) {
  EXPECT_DOUBLE_EQ(PredictedPassUs(FactsOf(4), 500, {.gathers = 10, .bytes = 1000}, 4), 500);
}

TEST(ClusterFacts, FewerRanksDivideTheArithmeticAndPayForTheNetwork) {
  const ClusterFacts facts = FactsOf(4);
  const PassTraffic traffic = {.gathers = 10, .bytes = 1000};  // 10 times 10 us
  EXPECT_DOUBLE_EQ(PredictedPassUs(facts, 500, traffic, 2), 400 * 4 / 2 + 100);
  EXPECT_DOUBLE_EQ(PredictedPassUs(facts, 500, traffic, 1), 400 * 4);
}

TEST(ClusterFacts, GathersTakeNoMoreOfAPassThanARankWaitedInIt) {
  const PassTraffic traffic = {.gathers = 100, .bytes = 10000, .share = 0.75};  // 100 times 10 us
  EXPECT_DOUBLE_EQ(PredictedPassUs(FactsOf(4), 500, traffic, 2), 125 * 4 / 2 + 375);
  EXPECT_DOUBLE_EQ(PredictedPassUs(FactsOf(4), 500, traffic, 1), 125 * 4);
}

TEST(GatherCost, CountsTheBitsThatArriveAtARank) {
  const GatherCost cost = {.bytes = 1000, .us = {.median = 8}};
  EXPECT_DOUBLE_EQ(cost.gbit_per_s(2), 0.5);
  EXPECT_DOUBLE_EQ(cost.gbit_per_s(4), 0.75);
  EXPECT_DOUBLE_EQ(cost.gbit_per_s(1), 0);
}

TEST(ClusterMeter, AllRanksGetTheSameFacts) {
  std::vector<ClusterFacts> facts(3);
  comm::RunAsRanks(3, [&](comm::Ranks& ranks) {
    ThreadPool pool(1);
    const auto measured =
        loader::MeasureCluster(ranks, pool, kernels::KernelsFor(kernels::Isa::kScalar));
    ASSERT_TRUE(measured.has_value());
    facts[static_cast<std::size_t>(ranks.rank())] = *measured;
  });
  for (const ClusterFacts& mine : facts) {
    ASSERT_EQ(mine.ranks.size(), 3u);
    EXPECT_EQ(mine.ranks[2].isa, "scalar");
    EXPECT_EQ(mine.ranks[2].memory_gb_per_s, facts[0].ranks[2].memory_gb_per_s);
    EXPECT_GT(mine.ranks[1].memory_bytes, 0);
    ASSERT_EQ(mine.gathers.size(), 7u);
    EXPECT_GT(mine.gathers.back().us.median, 0);
  }
}

TEST(ClusterMeter, OneRankAloneHasNoGathers) {
  comm::Alone alone;
  ThreadPool pool(1);
  const auto facts = loader::MeasureCluster(alone, pool, kernels::KernelsFor(kernels::kBestIsa));
  ASSERT_TRUE(facts.has_value());
  EXPECT_EQ(facts->ranks.size(), 1u);
  EXPECT_TRUE(facts->gathers.empty());
}

}  // namespace
}  // namespace foretoken
