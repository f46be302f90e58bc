// SPDX-License-Identifier: Apache-2.0
#include "model/memory/key_bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "base/failure_testing.h"
#include "kernels/dispatch.h"
#include "model/memory/cache_memory.h"
#include "tensor/dtype.h"

namespace foretoken::model {
namespace {

constexpr int kKeyDim = 64, kManyBlocks = 20;
constexpr std::array kMixedLayers = {CacheLayer{2, kKeyDim}, CacheLayer{1, 96, false, true},
                                     CacheLayer{2, kKeyDim, true}, CacheLayer{}, CacheLayer{1, 32}};

struct Bounds {
  float least, most;
};

Bounds BoundsOf(const std::uint16_t* tiles, int dim, int block, int d) {
  const std::uint16_t* const tile = tiles + block / 16 * 2 * dim * 16 + block % 16;
  return {tensor::F16ToF32(tile[(dim + d) * 16]), tensor::F16ToF32(tile[d * 16])};
}

// Every cache type and instruction set: what is learned is the range of the keys, as the cache rounds them.
TEST(KeyBounds, AreTheRangeOfABlocksKeys) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.3f, 2.0f);
  for (const kernels::Isa isa : kernels::AvailableIsas())
    for (const auto& [type, error] :
         {std::pair{tensor::KvType::kF32, 0.004f}, std::pair{tensor::KvType::kF16, 0.006f},
          std::pair{tensor::KvType::kBF16, 0.04f}, std::pair{tensor::KvType::kQ8_0, 0.05f},
          std::pair{tensor::KvType::kQ4_0, 0.8f}}) {
      const kernels::Kernels& kernels = kernels::KernelsFor(isa);
      CacheMemory memory = Got(CacheMemory::Create(
          kMixedLayers,
          {.k_type = type, .v_type = type, .n_blocks = kManyBlocks, .key_bounds = true}));
      KeyBounds& bounds = memory.bounds();
      ASSERT_EQ(bounds.n_heads(), 3);
      std::vector<float> work(2 * kKeyDim);
      for (int i = 0; i < bounds.n_heads(); ++i) {
        const auto [layer, head, dim, begin] = bounds.HeadAt(i);
        const auto view = memory.Head(layer, head);
        for (const int block : {0, 3, 17}) {
          std::byte* const keys = view.k + static_cast<std::size_t>(block) * view.k_stride;
          std::vector<Bounds> wanted(static_cast<std::size_t>(dim), {INFINITY, -INFINITY});
          for (int slot = 0; slot < 32; ++slot) {
            std::vector<float> key(static_cast<std::size_t>(dim));
            for (float& x : key) x = normal(random);
            kernels.store_k[static_cast<std::size_t>(type)](key.data(), dim, slot, keys);
            for (std::size_t d = 0; d < key.size(); ++d)
              wanted[d] = {std::min(wanted[d].least, key[d]), std::max(wanted[d].most, key[d])};
          }
          bounds.Learn(i, block, keys, type, kernels, work.data());
          for (int d = 0; d < dim; ++d) {
            const Bounds got = BoundsOf(bounds.Of(layer, head), dim, block, d);
            EXPECT_NEAR(got.least, wanted[static_cast<std::size_t>(d)].least, error);
            EXPECT_NEAR(got.most, wanted[static_cast<std::size_t>(d)].most, error);
          }
        }
      }
    }
}

TEST(KeyBounds, StandWhereRowsMayChoose) {
  const CacheOptions options{.n_blocks = kManyBlocks, .key_bounds = true};
  CacheMemory memory = Got(CacheMemory::Create(kMixedLayers, options));
  const KeyBounds& bounds = memory.bounds();
  EXPECT_TRUE(bounds.kept());
  EXPECT_NE(bounds.Of(0, 1), nullptr);
  EXPECT_NE(bounds.Of(4, 0), nullptr);
  for (const int layer : {1, 2, 3}) EXPECT_EQ(bounds.Of(layer, 0), nullptr) << layer;
  // Two tiles of 16 blocks, two heads of 64 dimensions and one of 32, two numbers of 2 bytes; and 20 marks.
  EXPECT_EQ(CacheMemory::Bytes(kMixedLayers, options) -
                CacheMemory::Bytes(kMixedLayers, {.n_blocks = kManyBlocks}),
            2U * 16 * (2 * kKeyDim + 32) * 2 * 2 + kManyBlocks);
  EXPECT_FALSE(Got(CacheMemory::Create(kMixedLayers, {.n_blocks = kManyBlocks})).bounds().kept());
}

TEST(KeyBounds, AreForgottenWithWhatABlockHolds) {
  CacheMemory memory = Got(CacheMemory::Create(kMixedLayers, {.n_blocks = 8, .key_bounds = true}));
  KeyBounds& bounds = memory.bounds();
  for (int block = 0; block < 8; ++block) bounds.Note(block);
  memory.Copy(1, 2, false);
  memory.Copy(1, 3, true);  // of layers with a window, which have no bounds
  memory.Clear(std::array<std::int32_t, 1>{4});
  std::vector<std::span<std::byte>> parts;  // through which a file fills the block
  memory.AddParts(5, parts);
  bounds.Forget(6);
  for (int block = 0; block < 8; ++block)
    EXPECT_EQ(bounds.Knows(block), block != 2 && (block < 4 || block == 7)) << block;
}

}  // namespace
}  // namespace foretoken::model
