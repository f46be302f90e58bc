// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <set>

namespace foretoken::tensor {
namespace {

TEST(DType, FindsExactlyTheTypesOfTheTable) {
  int found = 0;
  for (std::uint32_t number = 0; number < 100; ++number) {
    const DTypeInfo* info = FindDType(number);
    if (info == nullptr) continue;
    ++found;
    EXPECT_EQ(static_cast<std::uint32_t>(info->type), number);
    EXPECT_EQ(&InfoOf(info->type), info);
    EXPECT_EQ(info->name, GgmlTypeName(number));
  }
  EXPECT_EQ(found, static_cast<int>(AllDTypes().size()));
  EXPECT_EQ(FindDType(4), nullptr);
  EXPECT_EQ(FindDType(0xffffffff), nullptr);
}

TEST(DType, HasTheBlockSizesOfGguf) {
  const std::pair<DType, double> all[] = {
      {DType::kF32, 32},       {DType::kF16, 16},        {DType::kBF16, 16},
      {DType::kQ4_0, 4.5},     {DType::kQ4_1, 5},        {DType::kQ5_0, 5.5},
      {DType::kQ5_1, 6},       {DType::kQ8_0, 8.5},      {DType::kQ4_K, 4.5},
      {DType::kQ5_K, 5.5},     {DType::kQ6_K, 6.5625},   {DType::kMXFP4, 4.25},
      {DType::kIQ4_NL, 4.5},   {DType::kIQ4_XS, 4.25},   {DType::kQ3_K, 3.4375},
      {DType::kQ2_K, 2.625},   {DType::kIQ3_S, 3.4375},  {DType::kIQ3_XXS, 3.0625},
      {DType::kIQ2_S, 2.5625}, {DType::kIQ2_XS, 2.3125}, {DType::kIQ2_XXS, 2.0625},
      {DType::kIQ1_M, 1.75},   {DType::kIQ1_S, 1.5625},  {DType::kTQ2_0, 2.0625},
      {DType::kTQ1_0, 1.6875}};
  for (const auto& [type, bits] : all)
    EXPECT_EQ(8.0 * InfoOf(type).block_bytes / InfoOf(type).block_values, bits)
        << InfoOf(type).name;
}

TEST(DType, EachTypeHasItsTile) {
  std::set<TileType> tiles;
  for (const DTypeInfo& info : AllDTypes()) {
    const bool is_new = tiles.insert(info.tile).second;
    EXPECT_TRUE(is_new || info.widened) << info.name;
    EXPECT_EQ(TileValues(info.tile), info.block_values) << info.name;
  }
  EXPECT_EQ(tiles.size(), std::size_t{kTileTypes});
  EXPECT_EQ(InfoOf(DType::kQ8_0).tile, TileType::kQ8_0);
  EXPECT_EQ(InfoOf(DType::kQ4_K).tile, TileType::kQ4_K);
}

TEST(DType, NamesTypesItDoesNotRead) {
  EXPECT_EQ(GgmlTypeName(17), "IQ2_XS");
  EXPECT_EQ(GgmlTypeName(28), "F64");
  EXPECT_EQ(GgmlTypeName(35), "TQ2_0");
  EXPECT_EQ(GgmlTypeName(39), "MXFP4");
  EXPECT_EQ(GgmlTypeName(77), "type 77");
  EXPECT_EQ(GgmlTypeName(0xffffffff), "type 4294967295");
}

TEST(DType, NamesOfGgmlAreDistinct) {
  std::set<std::string> names;
  for (std::uint32_t number = 0; number < 41; ++number)
    EXPECT_TRUE(names.insert(std::string(GgmlTypeName(number))).second) << number;
}

TEST(DType, CacheBlocksAreWholeCacheLines) {
  EXPECT_EQ(KvBlockBytes(KvType::kF32, 64), 32u * 64 * 4);
  EXPECT_EQ(KvBlockBytes(KvType::kF16, 64), 32u * 64 * 2);
  EXPECT_EQ(KvBlockBytes(KvType::kBF16, 80), 32u * 80 * 2);
  EXPECT_EQ(KvBlockBytes(KvType::kQ8_0, 64), 32u * 64 + 2 * 32 * 2);
  EXPECT_EQ(KvBlockBytes(KvType::kQ8_0, 128), 32u * 128 + 4 * 32 * 2);
  EXPECT_EQ(KvBlockBytes(KvType::kQ4_0, 64), 32u * 64 / 2 + 2 * 32 * 2);
  EXPECT_EQ(KvBlockBytes(KvType::kQ4_0, 96), 32u * 96 / 2 + 3 * 32 * 2);
  for (int head_dim = 8; head_dim <= 256; head_dim += 8)
    for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16})
      EXPECT_EQ(KvBlockBytes(type, head_dim) % 64, 0u);
}

}  // namespace
}  // namespace foretoken::tensor
