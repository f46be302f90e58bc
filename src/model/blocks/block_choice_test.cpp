// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/block_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/dispatch.h"
#include "tensor/dtype.h"

namespace foretoken::model {
namespace {

constexpr int kChoiceDim = 32, kCacheBlocks = 60, kQueries = 3;

// The bounds of a cache's blocks, a sequence whose blocks lie anywhere in it, and a row's queries.
struct Scene {
  explicit Scene(int seed) : random(static_cast<unsigned>(seed)) {
    std::normal_distribution<float> normal;
    bounds.resize((kCacheBlocks + 15) / 16 * 2 * kChoiceDim * 16);
    for (int block = 0; block < kCacheBlocks; ++block)
      for (int d = 0; d < kChoiceDim; ++d) {
        const float a = normal(random), b = normal(random);
        At(block, d) = tensor::F32ToF16(std::max(a, b));
        At(block, kChoiceDim + d) = tensor::F32ToF16(std::min(a, b));
      }
    for (int i = 0; i < kCacheBlocks; ++i) blocks.push_back(i);
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (float& q : queries) q = normal(random);
  }
  std::uint16_t& At(int block, int number) {
    return bounds[static_cast<std::size_t>((block / 16 * 2 * kChoiceDim + number) * 16 +
                                           block % 16)];
  }
  double ScoreOf(int block) {
    double score = 0;
    for (int g = 0; g < kQueries; ++g)
      for (int d = 0; d < kChoiceDim; ++d) {
        const double q = queries[static_cast<std::size_t>(g * kChoiceDim + d)];
        score += std::max(q, 0.0) * tensor::F16ToF32(At(block, d)) +
                 std::min(q, 0.0) * tensor::F16ToF32(At(block, kChoiceDim + d));
      }
    return score;
  }
  // The blocks that a row of `length` positions sees.
  std::vector<std::int32_t> Seen(int length, int skipped, int best) {
    kernels::AttentionArgs args{};
    args.q = queries.data(), args.n_rows = 1, args.n_group = kQueries, args.head_dim = kChoiceDim;
    args.skipped_blocks = skipped;
    args.row_len = &length, args.blocks = blocks.data();
    const auto seen =
        choice.Choose(kernels::KernelsFor(kernels::Isa::kScalar), args, bounds.data(), best);
    const int n = (seen.length + 31) / 32;
    EXPECT_EQ(seen.length % 32, length % 32);
    return {seen.blocks, seen.blocks + n};
  }

  std::mt19937 random;
  std::vector<std::uint16_t> bounds;
  std::vector<std::int32_t> blocks;
  std::vector<float> queries = std::vector<float>(kQueries * kChoiceDim);
  BlockChoice choice{kCacheBlocks, kChoiceDim};
};

TEST(BlockChoice, TakesTheBestOfTheSkippedBlocks) {
  for (int seed = 0; seed < 20; ++seed)
    for (const int best : {1, 2, 5, 30, 100}) {
      Scene scene(seed);
      constexpr int kSkipped = 30, kLength = 32 * 40 + 7;  // 41 blocks
      std::vector<int> places(kSkipped);
      for (int i = 0; i < kSkipped; ++i) places[static_cast<std::size_t>(i)] = 1 + i;
      const auto score = [&](int place) {
        return scene.ScoreOf(scene.blocks[static_cast<std::size_t>(place)]);
      };
      std::sort(places.begin(), places.end(), [&](int a, int b) { return score(a) > score(b); });
      places.resize(static_cast<std::size_t>(std::min(best, kSkipped)));
      std::sort(places.begin(), places.end());
      std::vector<std::int32_t> wanted = {scene.blocks[0]};
      for (const int place : places)
        wanted.push_back(scene.blocks[static_cast<std::size_t>(place)]);
      wanted.insert(wanted.end(), scene.blocks.begin() + 1 + kSkipped, scene.blocks.begin() + 41);
      EXPECT_EQ(scene.Seen(kLength, kSkipped, best), wanted) << seed << " " << best;
    }
}

TEST(BlockChoice, TakesTheEarlierOfEqualBlocks) {
  Scene scene(1);
  for (int block = 0; block < kCacheBlocks; ++block)
    for (int i = 0; i < 2 * kChoiceDim; ++i) scene.At(block, i) = tensor::F32ToF16(1);
  const auto& b = scene.blocks;
  EXPECT_EQ(scene.Seen(32 * 9, 6, 2), (std::vector<std::int32_t>{b[0], b[1], b[2], b[7], b[8]}));
}

TEST(BlockChoice, NeverTakesABlockWithoutAScore) {
  Scene scene(2);
  scene.At(scene.blocks[3], 0) = 0x7e00;  // NaN
  const auto seen = scene.Seen(32 * 6, 4, 4);
  EXPECT_EQ(seen.size(), 5U);  // the first, three of four, and the last
  EXPECT_EQ(std::count(seen.begin(), seen.end(), scene.blocks[3]), 0);
}

}  // namespace
}  // namespace foretoken::model
