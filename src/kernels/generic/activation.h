// SPDX-License-Identifier: Apache-2.0
// kernels/generic/activation.h: silu_mul of kernels/kernels.h.
#pragma once

#include "kernels/generic/exp.h"

namespace foretoken::kernels::generic {
namespace {

template <class L>
FORETOKEN_INLINE Sixteen<L> Gated(const Sixteen<L>& g, const Sixteen<L>& u) {
  Sixteen<L> y;
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) y.of[t] = -g.of[t];
  Exp<L>(y.of);
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) y.of[t] = (g.of[t] / (L::All(1.0f) + y.of[t])) * u.of[t];
  return y;
}

template <class L>
void SiluMul(const float* g, const float* u, int n, float* y) {
  using X = Sixteen<L>;
  const int whole = n - n % kLanes, rest = n - whole;
  for (int i = 0; i < whole; i += kLanes) Gated<L>(X::Load(g + i), X::Load(u + i)).Store(y + i);
  if (rest == 0) return;
  Gated<L>(X::LoadFirst(g + whole, rest), X::LoadFirst(u + whole, rest))
      .StoreFirst(rest, y + whole);
}

}  // namespace
}  // namespace foretoken::kernels::generic
