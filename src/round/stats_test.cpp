// SPDX-License-Identifier: Apache-2.0
#include "foretoken/stats.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

TEST(SpeculationStats, AddsEveryCounter) {
  const SpeculationStats one{.rounds = 1,
                             .draft_rounds = 2,
                             .drafted = 3,
                             .accepted = 4,
                             .accepted_relaxed = 12,
                             .recovered = 5,
                             .bonus = 6,
                             .plain = 7,
                             .emitted = 8,
                             .rolled_back = 9,
                             .draft_forwards = 10,
                             .target_forwards = 11,
                             .drafted_per_position = {1, 2},
                             .verified_per_position = {3},
                             .accepted_per_position = {4, 5, 6},
                             .k_histogram = {7},
                             .draft_ms = 1,
                             .verify_ms = 2,
                             .overhead_ms = 3,
                             .draft_prompt_ms = 4};
  SpeculationStats sum = one;
  sum.Add(one);
  EXPECT_EQ((std::vector{sum.rounds, sum.draft_rounds, sum.drafted, sum.accepted, sum.recovered,
                         sum.bonus, sum.plain, sum.emitted, sum.rolled_back, sum.draft_forwards,
                         sum.target_forwards, sum.accepted_relaxed}),
            (std::vector<std::int64_t>{2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24}));
  EXPECT_EQ((std::vector{sum.draft_ms, sum.verify_ms, sum.overhead_ms, sum.draft_prompt_ms}),
            (std::vector<double>{2, 4, 6, 8}));
  EXPECT_EQ(sum.accepted_per_position, (std::vector<std::int64_t>{8, 10, 12}));
}

TEST(SpeculationStats, AddsPositionsOfUnequalNumbers) {
  SpeculationStats shorter{.drafted_per_position = {1},
                           .verified_per_position = {},
                           .accepted_per_position = {},
                           .k_histogram = {0, 2}};
  shorter.Add({.drafted_per_position = {1, 5},
               .verified_per_position = {3},
               .accepted_per_position = {},
               .k_histogram = {1}});
  EXPECT_EQ(shorter.drafted_per_position, (std::vector<std::int64_t>{2, 5}));
  EXPECT_EQ(shorter.verified_per_position, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(shorter.k_histogram, (std::vector<std::int64_t>{1, 2}));
}

TEST(SpeculationStats, HasNoRatesWithoutDrafts) {
  SpeculationStats stats{.rounds = 3,
                         .drafted_per_position = {},
                         .verified_per_position = {},
                         .accepted_per_position = {},
                         .k_histogram = {}};
  EXPECT_FALSE(stats.acceptance_rate());
  EXPECT_FALSE(stats.mean_acceptance_length());
  stats.draft_rounds = 2, stats.drafted = 8, stats.accepted = 6;
  EXPECT_DOUBLE_EQ(*stats.acceptance_rate(), 0.75);
  EXPECT_DOUBLE_EQ(*stats.mean_acceptance_length(), 4.0);
}

}  // namespace
}  // namespace foretoken
