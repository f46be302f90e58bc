// SPDX-License-Identifier: Apache-2.0
#include "model/memory/cache_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "base/failure_testing.h"
#include "tensor/dtype.h"

namespace foretoken::model {
namespace {

constexpr std::array kLayers = {CacheLayer{3, 8}, CacheLayer{1, 64}, CacheLayer{2, 32}};

TEST(CacheMemory, KeepsEveryBlockOfEveryHeadApart) {
  for (const auto& [k_type, v_type] : {std::pair{tensor::KvType::kF16, tensor::KvType::kF32},
                                       std::pair{tensor::KvType::kF32, tensor::KvType::kBF16}}) {
    const CacheOptions options{.k_type = k_type, .v_type = v_type, .n_blocks = 5};
    CacheMemory memory = *CacheMemory::Create(kLayers, options);
    std::size_t bytes = 0;
    unsigned char mark = 0;
    const auto visit = [&](auto&& each) {
      for (int layer = 0; layer < 3; ++layer)
        for (int head = 0; head < kLayers[static_cast<std::size_t>(layer)].n_kv_heads; ++head)
          for (std::size_t block = 0; block < 5; ++block) {
            const auto view = memory.Head(layer, head);
            each(view.k + block * view.k_stride, view.k_stride);
            each(view.v + block * view.v_stride, view.v_stride);
          }
    };
    visit([&](std::byte* at, std::size_t size) {
      std::memset(at, ++mark, size);
      bytes += size;
    });
    EXPECT_EQ(bytes, CacheMemory::Bytes(kLayers, options));
    mark = 0;
    visit([&](const std::byte* at, std::size_t size) {
      ++mark;
      ASSERT_EQ(at[0], std::byte{mark});
      ASSERT_EQ(at[size - 1], std::byte{mark});
    });
  }
}

TEST(CacheMemory, ClearsTheBlocksItIsTold) {
  CacheMemory memory = *CacheMemory::Create(kLayers, {.n_blocks = 4});
  const auto view = memory.Head(2, 1);
  std::memset(view.k, 1, 4 * view.k_stride);
  memory.Clear(std::array<std::int32_t, 2>{0, 2});
  for (std::size_t block = 0; block < 4; ++block)
    EXPECT_EQ(view.k[block * view.k_stride], block % 2 == 0 ? std::byte{0} : std::byte{1});
}

TEST(CacheMemory, GivesLayersWithAWindowBlocksOfTheirOwn) {
  constexpr std::array kMixed = {CacheLayer{2, 8, true}, CacheLayer{2, 8}};
  const CacheOptions options{.n_blocks = 10, .n_window_blocks = 3};
  const std::size_t whole = CacheMemory::Bytes(kMixed, {.n_blocks = 10});
  EXPECT_EQ(CacheMemory::Bytes(kMixed, options) * 20, whole * 13);
  CacheMemory memory = *CacheMemory::Create(kMixed, options);
  const auto first = memory.Head(0, 0), second = memory.Head(0, 1), whole_layer = memory.Head(1, 0);
  EXPECT_EQ(first.k + 3 * first.k_stride, second.k);
  EXPECT_EQ(second.v + 3 * second.v_stride, whole_layer.v);
  std::memset(second.k, 1, 3 * second.k_stride);
  memory.Clear(std::array<std::int32_t, 1>{9});
  EXPECT_EQ(second.k[2 * second.k_stride], std::byte{0});
}

TEST(CacheMemory, KeepsNoValuesWhereKeysHoldThem) {
  constexpr CacheLayer kLatent = {.n_kv_heads = 1, .head_dim = 40, .values_in_keys = true};
  constexpr std::array kMixed = {kLatent, CacheLayer{1, 32}};
  const CacheOptions options{
      .k_type = tensor::KvType::kF16, .v_type = tensor::KvType::kQ8_0, .n_blocks = 3};
  CacheMemory memory = *CacheMemory::Create(kMixed, options);
  EXPECT_EQ(memory.Head(0, 0).v_stride, 0u);
  EXPECT_EQ(memory.Head(0, 0).v, memory.Head(1, 0).v);
  EXPECT_EQ(CacheMemory::Bytes(kMixed, options), 3 * (tensor::KvBlockBytes(options.k_type, 40) +
                                                      tensor::KvBlockBytes(options.k_type, 32) +
                                                      tensor::KvBlockBytes(options.v_type, 32)));
  memory.Clear(std::array<std::int32_t, 2>{0, 2});
}

TEST(CacheMemory, RefusesAQuantisedTypeForSmallHeads) {
  for (const auto type : {tensor::KvType::kQ8_0, tensor::KvType::kQ4_0})
    EXPECT_TRUE(Fails(CacheMemory::Create(kLayers, {.k_type = type, .n_blocks = 1}),
                      ErrorCode::kUnsupported));
}

}  // namespace
}  // namespace foretoken::model
