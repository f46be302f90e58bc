// SPDX-License-Identifier: Apache-2.0
// tensor/wide_block.h: the blocks of files that are kept in a wider form when a model is loaded: IQ
// types of one to three bits, and ternary types.
//
// The values of an IQ block are entries of a codebook, with signs and scales. Each is exactly
//   d * scale[i / 16] * q[i]        d a float, scale and q small integers
// so nothing is lost: Dequantize gives the same numbers, and kernels multiply the integers.
// Ternary blocks are those of Q2_K with scales of 1 and minima of d.
#pragma once

#include <cstdint>

#include "tensor/block_layout.h"

namespace foretoken::tensor {

struct BlockWide {
  float d;
  std::int8_t scale[16];  // at most 31
  std::int8_t q[256];     // at most 62
};

// Grouped values share an entry of a codebook: 8, and 4 in the IQ3 types. A nibble of scales, or
// the high four bits of a word of signs, is a scale s: 2 s + 1.
struct BlockIQ2_XXS {
  std::uint16_t d;
  std::uint16_t
      qs[32];  // of each run of 32: four bytes of codes; four times 7 bits of signs, a scale
};
struct BlockIQ2_XS {
  std::uint16_t d;
  std::uint16_t qs[32];  // 9 bits of a code, 7 of signs
  std::uint8_t scales[8];
};
struct BlockIQ2_S {
  std::uint16_t d;
  std::uint8_t qs[64];  // low bits of the codes, then signs
  std::uint8_t qh[8];
  std::uint8_t scales[8];
};
struct BlockIQ3_XXS {
  std::uint16_t d;
  std::uint8_t qs[96];  // codes, then for each run four times 7 bits of signs and a scale
};
struct BlockIQ3_S {
  std::uint16_t d;
  std::uint8_t qs[64];
  std::uint8_t qh[8];
  std::uint8_t signs[32];
  std::uint8_t scales[4];
};
// IQ1: values are -1, 0 or 1, plus or minus 1/8.
struct BlockIQ1_S {
  std::uint16_t d;
  std::uint8_t qs[32];
  std::uint16_t qh[8];  // four times 3 bits of codes, a scale of 3 bits, the sign of 1/8
};
struct BlockIQ1_M {
  std::uint8_t qs[32];
  std::uint8_t qh[16];     // for each code 3 bits, and the sign of 1/8
  std::uint8_t scales[8];  // four words of 4 scales of 3 bits and 4 bits of d, a half
};
struct BlockTQ1_0 {
  std::uint8_t qs[48];  // five values of -1, 0 and 1 a byte
  std::uint8_t qh[4];   // four
  std::uint16_t d;
};
struct BlockTQ2_0 {
  std::uint8_t qs[64];  // two bits of each value, plus 1
  std::uint16_t d;
};
static_assert(sizeof(BlockWide) == 276 && sizeof(BlockIQ2_XXS) == 66 && sizeof(BlockIQ2_XS) == 74 &&
              sizeof(BlockIQ2_S) == 82 && sizeof(BlockIQ3_XXS) == 98 && sizeof(BlockIQ3_S) == 110 &&
              sizeof(BlockIQ1_S) == 50 && sizeof(BlockIQ1_M) == 56 && sizeof(BlockTQ1_0) == 54 &&
              sizeof(BlockTQ2_0) == 66);

BlockWide Widen(const BlockIQ2_XXS& b);
BlockWide Widen(const BlockIQ2_XS& b);
BlockWide Widen(const BlockIQ2_S& b);
BlockWide Widen(const BlockIQ3_XXS& b);
BlockWide Widen(const BlockIQ3_S& b);
BlockWide Widen(const BlockIQ1_S& b);
BlockWide Widen(const BlockIQ1_M& b);
BlockQ2_K Widen(const BlockTQ1_0& b);
BlockQ2_K Widen(const BlockTQ2_0& b);

}  // namespace foretoken::tensor
