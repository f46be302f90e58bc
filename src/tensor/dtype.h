// SPDX-License-Identifier: Apache-2.0
// tensor/dtype.h: the number types of GGUF tensors: names, sizes and
// tiles.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/block_layout.h"

namespace foretoken::tensor {

// ggml's type numbers, as GGUF files carry them.
enum class DType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

struct DTypeInfo {
  DType type;
  std::string_view name;  // "Q4_K"
  int block_values;       // values in a block: 1, 32 or 256
  int block_bytes;
  TileType tile;  // of the same numbers
};

// Tiles of integers with scales, which kernels multiply by quantised activations.
constexpr bool IsQuantised(TileType type) {
  return type >= TileType::kQ8_0;
}
// Values of an output in one tile: k is a multiple of it.
constexpr int TileValues(TileType type) {
  return type >= TileType::kQ4_K ? kSuperBlock : IsQuantised(type) ? kBlock : 1;
}

// The row of `type` in the table of known types; null for a type foretoken does not read.
const DTypeInfo* FindDType(std::uint32_t ggml_type);
const DTypeInfo& InfoOf(DType type);
std::span<const DTypeInfo> AllDTypes();
// ggml's name of a type number, also of those that foretoken does not read ("IQ2_XS"); "type 77"
// for a number nobody knows.
std::string_view GgmlTypeName(std::uint32_t ggml_type);

// n values (a multiple of block_values) of a row in file layout to f32.
void Dequantize(DType type, const void* row, std::int64_t n, float* out);

// IEEE half and bfloat16 bits to and from f32, rounding to nearest even; NaN stays NaN.
float F16ToF32(std::uint16_t bits);
std::uint16_t F32ToF16(float x);
float BF16ToF32(std::uint16_t bits);
std::uint16_t F32ToBF16(float x);

// Bytes of one cache block (32 positions of one head), keys or values alike.
std::size_t KvBlockBytes(KvType type, int head_dim);

}  // namespace foretoken::tensor
