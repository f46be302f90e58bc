// SPDX-License-Identifier: Apache-2.0
#include "tensor/dtype.h"

#include <fmt/format.h>

#include <array>

#include "base/check.h"
#include "foretoken/catalogue.h"
#include "tensor/wide_block.h"

namespace foretoken::tensor {
namespace {

constexpr DTypeInfo kTypes[] = {
    {DType::kF32, "F32", 1, 4, TileType::kF32},
    {DType::kF16, "F16", 1, 2, TileType::kF16},
    {DType::kQ4_0, "Q4_0", kBlock, sizeof(BlockQ4_0), TileType::kQ4_0},
    {DType::kQ4_1, "Q4_1", kBlock, sizeof(BlockQ4_1), TileType::kQ4_1},
    {DType::kQ5_0, "Q5_0", kBlock, sizeof(BlockQ5_0), TileType::kQ5_0},
    {DType::kQ5_1, "Q5_1", kBlock, sizeof(BlockQ5_1), TileType::kQ5_1},
    {DType::kQ8_0, "Q8_0", kBlock, sizeof(BlockQ8_0), TileType::kQ8_0},
    {DType::kQ4_K, "Q4_K", kSuperBlock, sizeof(BlockQ4_K), TileType::kQ4_K},
    {DType::kQ5_K, "Q5_K", kSuperBlock, sizeof(BlockQ5_K), TileType::kQ5_K},
    {DType::kQ6_K, "Q6_K", kSuperBlock, sizeof(BlockQ6_K), TileType::kQ6_K},
    {DType::kBF16, "BF16", 1, 2, TileType::kBF16},
    {DType::kMXFP4, "MXFP4", kBlock, sizeof(BlockMXFP4), TileType::kMXFP4},
    {DType::kIQ4_NL, "IQ4_NL", kBlock, sizeof(BlockIQ4_NL), TileType::kIQ4_NL},
    {DType::kIQ4_XS, "IQ4_XS", kSuperBlock, sizeof(BlockIQ4_XS), TileType::kIQ4_XS},
    {DType::kQ3_K, "Q3_K", kSuperBlock, sizeof(BlockQ3_K), TileType::kQ3_K},
    {DType::kQ2_K, "Q2_K", kSuperBlock, sizeof(BlockQ2_K), TileType::kQ2_K},
    {DType::kIQ3_S, "IQ3_S", kSuperBlock, sizeof(BlockIQ3_S), TileType::kWide, true},
    {DType::kIQ3_XXS, "IQ3_XXS", kSuperBlock, sizeof(BlockIQ3_XXS), TileType::kWide, true},
    {DType::kIQ2_S, "IQ2_S", kSuperBlock, sizeof(BlockIQ2_S), TileType::kWide, true},
    {DType::kIQ2_XS, "IQ2_XS", kSuperBlock, sizeof(BlockIQ2_XS), TileType::kWide, true},
    {DType::kIQ2_XXS, "IQ2_XXS", kSuperBlock, sizeof(BlockIQ2_XXS), TileType::kWide, true},
    {DType::kIQ1_M, "IQ1_M", kSuperBlock, sizeof(BlockIQ1_M), TileType::kWide, true},
    {DType::kIQ1_S, "IQ1_S", kSuperBlock, sizeof(BlockIQ1_S), TileType::kWide, true},
    {DType::kTQ2_0, "TQ2_0", kSuperBlock, sizeof(BlockTQ2_0), TileType::kQ2_K, true},
    {DType::kTQ1_0, "TQ1_0", kSuperBlock, sizeof(BlockTQ1_0), TileType::kQ2_K, true},
};

// In the order of TileType.
constexpr auto kTileValues = [] {
  std::array<int, kTileTypes> values = {};
  for (const DTypeInfo& info : kTypes)
    values[static_cast<std::size_t>(info.tile)] = info.block_values;
  return values;
}();

// In the order of ggml's type numbers. ggml no longer uses 4, 5, 31-33 and 36-38, but old files may
// still have them.
constexpr std::array<std::string_view, 41> kGgmlNames = {
    "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
    "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
    "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
    "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
    "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
    "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4"};

}  // namespace

const DTypeInfo* FindDType(std::uint32_t ggml_type) {
  for (const DTypeInfo& info : kTypes)
    if (static_cast<std::uint32_t>(info.type) == ggml_type) return &info;
  return nullptr;
}

const DTypeInfo& InfoOf(DType type) {
  const DTypeInfo* info = FindDType(static_cast<std::uint32_t>(type));
  FORETOKEN_CHECK(info != nullptr);
  return *info;
}

int TileValues(TileType type) {
  return kTileValues[static_cast<std::size_t>(type)];
}

bool IsQuantised(TileType type) {
  return TileValues(type) > 1;
}

std::span<const DTypeInfo> AllDTypes() {
  return kTypes;
}

std::string_view GgmlTypeName(std::uint32_t ggml_type) {
  if (ggml_type < kGgmlNames.size()) return kGgmlNames[ggml_type];
  // The name of an unknown number is valid until this thread asks for the next such name.
  thread_local std::array<char, 16> unknown;
  const auto end = fmt::format_to_n(unknown.data(), unknown.size(), "type {}", ggml_type).out;
  return {unknown.data(), static_cast<std::size_t>(end - unknown.data())};
}

std::size_t KvBlockBytes(KvType type, int head_dim) {
  const std::size_t values = std::size_t{kKvBlock} * static_cast<std::size_t>(head_dim);
  std::size_t bytes = 0;
  switch (type) {
    case KvType::kF32:
      bytes = values * 4;
      break;
    case KvType::kF16:
    case KvType::kBF16:
      bytes = values * 2;
      break;
    case KvType::kQ8_0:
      bytes = values + values / kBlock * 2;
      break;
    case KvType::kQ4_0:
      bytes = values / 2 + values / kBlock * 2;
      break;
  }
  constexpr std::size_t kCacheLine = 64;
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

}  // namespace foretoken::tensor

namespace foretoken {

namespace {

std::string_view Products(const tensor::DTypeInfo& info) {
  if (!tensor::IsQuantised(info.tile)) return "f32 activations";
  if (!info.widened) return "int8 activations, 32 to a scale";
  return info.tile == tensor::TileType::kQ2_K ? "as Q2_K, which it becomes at load"
                                              : "int8 activations; becomes 8.6 bits at load";
}

}  // namespace

std::vector<NumberTypeInfo> AllNumberTypes() {
  std::vector<NumberTypeInfo> rows;
  for (const tensor::DTypeInfo& info : tensor::AllDTypes())
    rows.push_back({.name = info.name,
                    .block_values = info.block_values,
                    .block_bytes = info.block_bytes,
                    .products = Products(info)});
  return rows;
}

}  // namespace foretoken
