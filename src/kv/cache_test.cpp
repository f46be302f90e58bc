// SPDX-License-Identifier: Apache-2.0
#include "kv/cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

namespace foretoken::kv {
namespace {

CacheShape SmallShape() {
  return {.n_layers = 2,
          .n_kv_heads = 3,
          .head_dim = 8,
          .k_type = tensor::KvType::kF32,
          .v_type = tensor::KvType::kF32,
          .n_sequences = 3,
          .max_positions = 100};
}

// A row is stood for by one number, written where the kernels would write a key's first dimension.
void WriteRow(Cache& cache, SeqId seq, int position, float value) {
  for (int layer = 0; layer < 2; ++layer)
    for (int head = 0; head < 3; ++head) {
      const auto view = cache.Head(layer, head);
      const auto block =
          static_cast<std::size_t>(cache.Blocks(seq)[static_cast<std::size_t>(position / 32)]);
      const float marked = value + static_cast<float>(layer * 10 + head) * 0.001f;
      std::memcpy(
          view.k + block * view.k_stride + sizeof(float) * static_cast<std::size_t>(position % 32),
          &marked, 4);
      std::memcpy(view.v + block * view.v_stride +
                      sizeof(float) * 8 * static_cast<std::size_t>(position % 32),
                  &marked, 4);
    }
}

float ReadRow(Cache& cache, SeqId seq, int position, int layer, int head) {
  const auto view = cache.Head(layer, head);
  const auto block =
      static_cast<std::size_t>(cache.Blocks(seq)[static_cast<std::size_t>(position / 32)]);
  float k, v;
  std::memcpy(
      &k, view.k + block * view.k_stride + sizeof(float) * static_cast<std::size_t>(position % 32),
      4);
  std::memcpy(
      &v,
      view.v + block * view.v_stride + sizeof(float) * 8 * static_cast<std::size_t>(position % 32),
      4);
  EXPECT_EQ(k, v);
  return k - static_cast<float>(layer * 10 + head) * 0.001f;
}

TEST(Cache, HoldsWhatAMapHoldsAfterRandomPrograms) {
  auto made = Cache::Create(SmallShape());
  ASSERT_TRUE(made);
  Cache cache = std::move(*made);
  std::map<SeqId, std::vector<float>> model;
  std::mt19937 random(5);
  const int all_blocks = cache.n_free_blocks();
  for (int step = 0; step < 3000; ++step) {
    if (random() % 10 == 0) {
      const auto seq = static_cast<SeqId>(random() % 3);
      const int length = static_cast<int>(random() % (model[seq].size() + 1));
      cache.Truncate(seq, length);
      model[seq].resize(static_cast<std::size_t>(length));
    } else {
      std::vector<Transaction::Rows> rows;
      std::vector<int> kept;
      for (SeqId seq = 0; seq < 3; ++seq) {
        if (random() % 2) continue;
        const int n = static_cast<int>(random() % 20);
        if (n > cache.room(seq)) continue;
        rows.push_back({seq, n});
        kept.push_back(n == 0 ? 0 : static_cast<int>(random() % static_cast<unsigned>(n + 1)));
      }
      const bool commit = random() % 4 != 0;
      Transaction transaction(cache, rows);
      for (std::size_t i = 0; i < rows.size(); ++i)
        for (int j = 0; j < rows[i].n; ++j) {
          const auto value = static_cast<float>(random() % 1000);
          WriteRow(cache, rows[i].seq, cache.length(rows[i].seq) + j, value);
          if (commit && j < kept[i]) model[rows[i].seq].push_back(value);
        }
      if (commit) transaction.Commit(kept);
    }
    for (SeqId seq = 0; seq < 3; ++seq) {
      ASSERT_EQ(cache.length(seq), static_cast<int>(model[seq].size()));
      for (int p = 0; p < cache.length(seq); ++p)
        ASSERT_NEAR(ReadRow(cache, seq, p, p % 2, p % 3), model[seq][static_cast<std::size_t>(p)],
                    1e-3);
    }
  }
  for (SeqId seq = 0; seq < 3; ++seq) cache.Truncate(seq, 0);
  EXPECT_EQ(cache.n_free_blocks(), all_blocks);
}

TEST(Cache, TransactionWithoutCommitGivesItsBlocksBack) {
  auto cache = Cache::Create(SmallShape());
  ASSERT_TRUE(cache);
  const int before = cache->n_free_blocks();
  const std::vector<Transaction::Rows> rows = {{1, 65}};
  {
    Transaction transaction(*cache, rows);
    EXPECT_EQ(cache->n_free_blocks(), before - 3);
  }
  EXPECT_EQ(cache->n_free_blocks(), before);
  EXPECT_EQ(cache->length(1), 0);
}

TEST(Cache, RefusesAQuantisedTypeForSmallHeads) {
  CacheShape shape = SmallShape();
  shape.k_type = tensor::KvType::kQ8_0;
  const auto cache = Cache::Create(shape);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace foretoken::kv
