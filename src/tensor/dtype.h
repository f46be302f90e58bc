// SPDX-License-Identifier: Apache-2.0
// tensor/dtype.h: the table of number types: names, sizes and tiles.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/block_layout.h"

namespace foretoken::tensor {

struct DTypeInfo {
  DType type;
  std::string_view name;  // "Q4_K"
  int block_values;       // values in a block: 1, 32 or 256
  int block_bytes;
  TileType tile;  // the tile of this type
  // Whether the tile is that of a wider type: the values are the same, and take more memory. Such a
  // type is read and not written.
  bool widened = false;
};

// Whether the tile holds integers with scales, which kernels multiply by quantised activations.
bool IsQuantised(TileType type);
// Values of an output in one tile: k is a multiple of it. 1 for tiles of floats.
int TileValues(TileType type);

// The row of the type with this number; null for a type that foretoken does not read.
const DTypeInfo* FindDType(std::uint32_t ggml_type);
const DTypeInfo& InfoOf(DType type);
std::span<const DTypeInfo> AllDTypes();
// ggml's name of a type number, also of types that foretoken does not read ("IQ2_XS"); "type 77"
// for an unknown number.
std::string_view GgmlTypeName(std::uint32_t ggml_type);

// Converts n values (a multiple of block_values) of a row as the file holds it to f32.
void Dequantize(DType type, const void* row, std::int64_t n, float* out);

// The bits of IEEE half and bfloat16 numbers to and from f32. They round to nearest even; NaN stays
// NaN.
float F16ToF32(std::uint16_t bits);
std::uint16_t F32ToF16(float x);
float BF16ToF32(std::uint16_t bits);
std::uint16_t F32ToBF16(float x);
// The scale that the exponent of an MXFP4 block stands for: 2^(exponent - 128). It is exact; 2^-128
// and 2^-127 are subnormal.
float Mxfp4Scale(std::uint8_t exponent);

// Bytes of one cache block: keys or values of one head at 32 positions.
std::size_t KvBlockBytes(KvType type, int head_dim);

}  // namespace foretoken::tensor
