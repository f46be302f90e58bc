// SPDX-License-Identifier: Apache-2.0
#include "kv/block_tables.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kv/transaction.h"

namespace foretoken::kv {
namespace {

TablesShape SmallShape() {
  return {.n_sequences = 3, .max_positions = 100};
}

// The memory that a runner would have: one number stands for the row of a position.
class Memory {
 public:
  explicit Memory(int n_blocks)
      : rows_(static_cast<std::size_t>(n_blocks) * std::size_t{tensor::kKvBlock}) {}
  float& At(std::span<const std::int32_t> blocks, int position) {
    const int block = blocks[static_cast<std::size_t>(position / tensor::kKvBlock)];
    return rows_[static_cast<std::size_t>(block * tensor::kKvBlock + position % tensor::kKvBlock)];
  }

 private:
  std::vector<float> rows_;
};

TEST(BlockTables, GiveEachPositionAPlaceOfItsOwnThroughRandomPrograms) {
  BlockTables tables(SmallShape());
  Memory memory(tables.n_blocks());
  std::map<SeqId, std::vector<float>> known;
  std::mt19937 random(5);
  const int all_blocks = tables.n_free_blocks();
  for (int step = 0; step < 3000; ++step) {
    if (random() % 10 == 0) {
      const auto seq = static_cast<SeqId>(random() % 3);
      const int length = static_cast<int>(random() % (known[seq].size() + 1));
      tables.Truncate(seq, length);
      known[seq].resize(static_cast<std::size_t>(length));
    } else {
      std::vector<Segment> segments;
      std::vector<int> kept;
      for (SeqId seq = 0; seq < 3; ++seq) {
        if (random() % 2) continue;
        const int n = static_cast<int>(random() % 20);
        if (n > tables.room(seq)) continue;
        segments.push_back({.seq = seq, .n_rows = n, .first_position = tables.length(seq)});
        kept.push_back(n == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(n + 1)));
      }
      const bool commit = random() % 4 != 0;
      Transaction transaction(tables, segments);
      for (std::size_t i = 0; i < segments.size(); ++i)
        for (int j = 0; j < segments[i].n_rows; ++j) {
          const auto value = static_cast<float>(random() % 1000);
          memory.At(segments[i].blocks, segments[i].first_position + j) = value;
          if (commit && j < kept[i]) known[segments[i].seq].push_back(value);
        }
      if (commit) transaction.Commit(kept);
    }
    for (SeqId seq = 0; seq < 3; ++seq) {
      ASSERT_EQ(tables.length(seq), static_cast<int>(known[seq].size()));
      for (int p = 0; p < tables.length(seq); ++p)
        ASSERT_EQ(memory.At(tables.Blocks(seq), p), known[seq][static_cast<std::size_t>(p)]);
    }
  }
  for (SeqId seq = 0; seq < 3; ++seq) tables.Truncate(seq, 0);
  EXPECT_EQ(tables.n_free_blocks(), all_blocks);
}

TEST(BlockTables, CountTheBlocksOfTheirShape) {
  EXPECT_EQ(BlockTables(SmallShape()).n_blocks(), 3 * 4);
  EXPECT_EQ(BlockTables({.n_sequences = 3, .max_positions = 100, .n_positions = 65}).n_blocks(), 3);
}

TEST(Transaction, GivesItsBlocksBackWithoutCommit) {
  BlockTables tables(SmallShape());
  const int before = tables.n_free_blocks();
  Segment segment{.seq = 1, .n_rows = 65};
  {
    Transaction transaction(tables, {&segment, 1});
    EXPECT_EQ(tables.n_free_blocks(), before - 3);
    EXPECT_EQ(segment.blocks.size(), 3u);
  }
  EXPECT_EQ(tables.n_free_blocks(), before);
  EXPECT_EQ(tables.length(1), 0);
}

TEST(TransactionDeathTest, RefusesASegmentThatDoesNotBeginAtTheCommittedLength) {
  BlockTables tables(SmallShape());
  Segment segment{.seq = 1, .n_rows = 1, .first_position = 5};
  EXPECT_DEATH(Transaction(tables, {&segment, 1}), "");
}

}  // namespace
}  // namespace foretoken::kv
