// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/division.h"

#include <gtest/gtest.h>

#include "model/ranks/heads.h"

namespace foretoken::model {
namespace {

const std::vector<std::vector<int>> kSpeeds = {
    {1},    {1, 1},        {1, 1, 1}, {10, 10, 10, 10},
    {1, 3}, {10, 2, 5, 1}, {1, 10},   std::vector<int>(64, 1)};

// Calls check(division) for each of the speeds.
template <typename Check>
void ForDivisions(Check&& check) {
  for (const auto& speeds : kSpeeds) check(Division(0, speeds));
}

TEST(Division, OfOneRankIsEverything) {
  const Division alone;
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.Own(100, 32), (OutputRange{0, 100}));
  EXPECT_EQ(alone.PartOf(1000), 1000);
}

TEST(Division, CoversAllOutputsWithoutGaps) {
  ForDivisions([](const Division& division) {
    for (const int n : {1, 16, 31, 32, 33, 100, 320, 4096, 128256})
      for (const int unit : {1, 2, 16, 32, 64}) {
        int next = 0;
        for (int rank = 0; rank < division.size(); ++rank) {
          const OutputRange range = division.Of(rank, n, unit);
          EXPECT_EQ(range.begin, next);
          EXPECT_GE(range.end, range.begin);
          next = range.end;
        }
        EXPECT_EQ(next, n) << division.size() << " ranks, units of " << unit;
      }
  });
}

TEST(Division, GivesWholeUnits) {
  ForDivisions([](const Division& division) {
    for (const int n : {100, 320, 4097})
      for (int rank = 0; rank < division.size(); ++rank) {
        const OutputRange range = division.Of(rank, n, 32);
        EXPECT_TRUE(range.begin % 32 == 0 || range.begin == n);
        EXPECT_TRUE(range.end % 32 == 0 || range.end == n);
      }
  });
}

TEST(Division, FollowsTheSpeeds) {
  const Division division(1, {1, 3});
  EXPECT_EQ(division.Of(0, 4096, 32), (OutputRange{0, 1024}));
  EXPECT_EQ(division.Own(4096, 32), (OutputRange{1024, 4096}));
  EXPECT_EQ(division.PartOf(4096), 3072);
}

TEST(Division, RanksBeyondTheUnitsHaveNone) {
  const Division division(0, std::vector<int>(4, 1));
  int n_with_outputs = 0;
  for (int rank = 0; rank < 4; ++rank) n_with_outputs += division.Of(rank, 64, 32).n() > 0;
  EXPECT_EQ(n_with_outputs, 2);
}

AttentionConfig Heads(int n_heads, int n_kv_heads, int head_dim) {
  AttentionConfig config;
  config.n_heads = n_heads, config.n_kv_heads = n_kv_heads, config.head_dim = head_dim;
  return config;
}

const std::vector<AttentionConfig> kHeads = {Heads(32, 8, 128), Heads(8, 8, 64), Heads(9, 3, 64),
                                             Heads(14, 2, 64),  Heads(4, 2, 16), Heads(4, 1, 8),
                                             Heads(8, 1, 256),  Heads(1, 1, 32)};

TEST(Heads, OfAllRanksAreAllQueries) {
  for (const AttentionConfig& config : kHeads)
    ForDivisions([&](const Division& division) {
      int next = 0;
      for (int rank = 0; rank < division.size(); ++rank) {
        const HeadRange heads = HeadsOf(config, division, rank);
        EXPECT_EQ(heads.queries.begin, next);
        next = heads.queries.end;
      }
      EXPECT_EQ(next, config.n_heads);
    });
}

TEST(Heads, KeysAreThoseThatTheQueriesRead) {
  for (const AttentionConfig& config : kHeads)
    ForDivisions([&](const Division& division) {
      const int group = config.n_heads / config.n_kv_heads;
      for (int rank = 0; rank < division.size(); ++rank) {
        const HeadRange heads = HeadsOf(config, division, rank);
        if (heads.queries.n() == 0) {
          EXPECT_EQ(heads.keys.n(), 0);
          continue;
        }
        EXPECT_EQ(heads.keys.begin, heads.queries.begin / group);
        EXPECT_EQ(heads.keys.end, (heads.queries.end + group - 1) / group);
      }
    });
}

TEST(Heads, ResultsFillBlocks) {
  for (const AttentionConfig& config : kHeads)
    ForDivisions([&](const Division& division) {
      const auto begins = HeadColumnsByRank(config, division);
      EXPECT_EQ(begins.size(), static_cast<std::size_t>(division.size()) + 1);
      EXPECT_EQ(begins.back(), config.n_heads * config.head_dim);
      for (const std::int32_t begin : begins)
        EXPECT_TRUE(begin % tensor::kBlock == 0 || begin == begins.back());
    });
}

// Two ranks read the same keys only where there are fewer of them than ranks.
TEST(Heads, KeysAreDividedWhereThereAreEnough) {
  const Division four(0, std::vector<int>(4, 1));
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(HeadsOf(Heads(32, 8, 128), four, rank).keys, (OutputRange{2 * rank, 2 * rank + 2}));
    EXPECT_EQ(HeadsOf(Heads(32, 2, 128), four, rank).keys, (OutputRange{rank / 2, rank / 2 + 1}));
  }
}

TEST(Heads, OfLatentAttentionFillBlocks) {
  LatentAttentionConfig config;
  config.n_heads = 16, config.value_dim = 16;
  const Division three(2, {1, 1, 1});
  EXPECT_EQ(HeadColumnsByRank(config, three), (std::vector<std::int32_t>{0, 64, 160, 256}));
  EXPECT_EQ(OwnHeads(config, three), (OutputRange{10, 16}));
}

}  // namespace
}  // namespace foretoken::model
