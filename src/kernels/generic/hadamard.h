// SPDX-License-Identifier: Apache-2.0
// kernels/generic/hadamard.h: hadamard of kernels/kernels.h.
//
// What L offers for it: Swap<h>(x), x with lanes i and i ^ h exchanged, h a power of two below kWidth.
#pragma once

#include "kernels/generic/lanes.h"

namespace foretoken::kernels::generic {
namespace {

// The pairs whose places differ in a bit from h on, within a register.
template <class L, int h = 1>
FORETOKEN_INLINE typename L::F AddPairsOfLanes(typename L::F x) {
  if constexpr (h < L::kWidth) {
    typename L::I negated = {};
#pragma GCC unroll 16
    for (int i = 0; i < L::kWidth; ++i) negated[i] = (i & h) != 0 ? INT32_MIN : 0;
    using I = typename L::I;
    using F = typename L::F;
    const F own = __builtin_bit_cast(F, __builtin_bit_cast(I, x) ^ negated);
    return AddPairsOfLanes<L, 2 * h>(L::template Swap<h>(x) + own);
  } else {
    return x;
  }
}

template <class L>
void Hadamard(float* x, int n, int block, float factor) {
  constexpr int kWidth = L::kWidth;
  for (const float* const end = x + n; x != end; x += block) {
    for (int i = 0; i < block; i += kWidth) L::Store(AddPairsOfLanes<L>(L::Load(x + i)), x + i);
    for (int h = kWidth; h < block; h *= 2)
      for (int i = 0; i < block; i += (i + kWidth) % h == 0 ? h + kWidth : kWidth) {
        const typename L::F a = L::Load(x + i), b = L::Load(x + i + h);
        L::Store(a + b, x + i);
        L::Store(a - b, x + i + h);
      }
    for (int i = 0; i < block; i += kWidth) L::Store(L::Load(x + i) * L::All(factor), x + i);
  }
}

}  // namespace
}  // namespace foretoken::kernels::generic
