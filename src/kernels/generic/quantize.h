// SPDX-License-Identifier: Apache-2.0
// kernels/generic/quantize.h: quantize of kernels/kernels.h.
//
// What L offers for it:
//   Pack(v)               32 integers, in registers, as 32 signed bytes (of type L::Bytes)
//   StoreBytes(bytes, q)  the bytes to memory
//   StoreSums(bytes, s)   s[0] = the sum of the first 16 bytes, s[1] = the sum of all 32. The sums
//                         are taken of the bytes, which are bounded: numbers that are not finite
//                         were converted to the least 32-bit integer.
#pragma once

#include "kernels/generic/lanes.h"

namespace foretoken::kernels::generic {
namespace {

// Registers of 32 values.
template <class L>
constexpr int kBlockRegisters = tensor::kBlock / L::kWidth;

// The largest |x| of 32 values. Magnitudes are compared as integers: they have the same order, and
// NaN and infinity are the largest.
template <class L>
FORETOKEN_INLINE float LargestMagnitude(const float* x) {
  using I = typename L::I;
  I largest = {};
#pragma GCC unroll 8
  for (int t = 0; t < kBlockRegisters<L>; ++t) {
    const I magnitude = __builtin_bit_cast(I, L::Load(x + t * L::kWidth)) & 0x7fffffff;
    largest = magnitude > largest ? magnitude : largest;
  }
  return __builtin_bit_cast(float, L::LargestOf(largest));
}

template <class L>
FORETOKEN_INLINE void QuantizeBlock(const float* x, std::int8_t* q, float* d, std::int32_t* sums) {
  float amax = LargestMagnitude<L>(x);
  if (amax < 0x1p-100f) amax = 0;
  *d = amax / 127.0f;
  const typename L::F id = L::All(amax > 0 ? 127.0f / amax : 0.0f);
  typename L::I v[kBlockRegisters<L>];
#pragma GCC unroll 8
  for (int t = 0; t < kBlockRegisters<L>; ++t) v[t] = L::Nearest(L::Load(x + t * L::kWidth) * id);
  const typename L::Bytes bytes = L::Pack(v);
  L::StoreBytes(bytes, q);
  L::StoreSums(bytes, sums);
}

template <class L>
void Quantize(const float* x, std::int64_t x_stride, int n_rows, int k, std::int8_t* xq, float* xd,
              std::int32_t* xs) {
  for (int row = 0; row < n_rows; ++row) {
    for (int i = 0; i < k; i += tensor::kBlock) {
      QuantizeBlock<L>(x + row * x_stride + i, xq, xd++, xs);
      xq += tensor::kBlock;
      xs += 2;
    }
  }
}

}  // namespace
}  // namespace foretoken::kernels::generic
