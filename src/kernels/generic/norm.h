// SPDX-License-Identifier: Apache-2.0
// kernels/generic/norm.h: rms_norm of kernels/kernels.h.
#pragma once

#include "kernels/generic/lanes.h"

namespace foretoken::kernels::generic {
namespace {

template <class L>
FORETOKEN_INLINE void AddSquares(const Sixteen<L>& x, Sixteen<L>& sums) {
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) sums.of[t] = L::Fma(x.of[t], x.of[t], sums.of[t]);
}

template <class L>
FORETOKEN_INLINE Sixteen<L> Scaled(const Sixteen<L>& x, typename L::F factor,
                                   const Sixteen<L>& weight) {
  Sixteen<L> y;
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) y.of[t] = (x.of[t] * factor) * weight.of[t];
  return y;
}

template <class L>
void RmsNorm(const float* x, const float* weight, int n, float eps, float* y) {
  using X = Sixteen<L>;
  const int whole = n - n % kLanes, rest = n - whole;
  X sums = X::All(0.0f);
  for (int i = 0; i < whole; i += kLanes) AddSquares<L>(X::Load(x + i), sums);
  const X last = X::LoadFirst(x + whole, rest);
  AddSquares<L>(last, sums);  // zeros leave a lane as it is
  const float factor = 1.0f / __builtin_sqrtf(FoldSum<L>(sums) / static_cast<float>(n) + eps);

  const typename L::F f = L::All(factor);
  for (int i = 0; i < whole; i += kLanes)
    Scaled<L>(X::Load(x + i), f, X::Load(weight + i)).Store(y + i);
  if (rest > 0) Scaled<L>(last, f, X::LoadFirst(weight + whole, rest)).StoreFirst(rest, y + whole);
}

}  // namespace
}  // namespace foretoken::kernels::generic
