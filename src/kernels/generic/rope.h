// SPDX-License-Identifier: Apache-2.0
// kernels/generic/rope.h: rope of kernels/kernels.h.
//
// What L offers for it, for pairs (a, b) that lie side by side in memory, in two registers v0, v1:
//   Unzip(v0, v1)     the a and the b of these pairs, in an order that suits the instruction set
//   InPairOrder(c)    one number for each pair, put into that order
//   Zip(pairs)        the two registers again
#pragma once

#include "kernels/generic/lanes.h"

namespace foretoken::kernels::generic {
namespace {

template <class L>
FORETOKEN_INLINE Pairs<L> Rotate(const Pairs<L>& x, typename L::F c, typename L::F s) {
  return {L::Fma(x.a, c, -(x.b * s)), L::Fma(x.a, s, x.b * c)};
}

// n pairs, n in [1, kWidth]: the first numbers at a, the second ones at b.
template <class L>
FORETOKEN_INLINE void RotateSplit(float* a, float* b, int n, const float* c, const float* s) {
  if (n == L::kWidth) {
    const Pairs<L> y = Rotate<L>({L::Load(a), L::Load(b)}, L::Load(c), L::Load(s));
    L::Store(y.a, a);
    L::Store(y.b, b);
    return;
  }
  const Pairs<L> y =
      Rotate<L>({L::LoadFirst(a, n), L::LoadFirst(b, n)}, L::LoadFirst(c, n), L::LoadFirst(s, n));
  L::StoreFirst(y.a, n, a);
  L::StoreFirst(y.b, n, b);
}

// n pairs, n in [1, kWidth], which lie side by side at x.
template <class L>
FORETOKEN_INLINE void RotateInterleaved(float* x, int n, const float* c, const float* s) {
  constexpr int kWidth = L::kWidth;
  if (n == kWidth) {
    const Pairs<L> y = Rotate<L>(L::Unzip(L::Load(x), L::Load(x + kWidth)),
                                 L::InPairOrder(L::Load(c)), L::InPairOrder(L::Load(s)));
    const Pairs<L> v = L::Zip(y);
    L::Store(v.a, x);
    L::Store(v.b, x + kWidth);
    return;
  }
  const Pairs<L> y =
      Rotate<L>(L::Unzip(L::LoadFirst(x, 2 * n), L::LoadFirst(x + kWidth, 2 * n - kWidth)),
                L::InPairOrder(L::LoadFirst(c, n)), L::InPairOrder(L::LoadFirst(s, n)));
  const Pairs<L> v = L::Zip(y);
  L::StoreFirst(v.a, 2 * n, x);
  L::StoreFirst(v.b, 2 * n - kWidth, x + kWidth);
}

template <class L>
void Rope(float* x, int n_heads, int head_dim, int n_rot, bool interleaved, const float* c,
          const float* s) {
  const int half = n_rot / 2;
  for (int h = 0; h < n_heads; ++h) {
    float* head = x + static_cast<std::ptrdiff_t>(h) * head_dim;
    for (int i = 0; i < half; i += L::kWidth) {
      const int n = half - i < L::kWidth ? half - i : L::kWidth;
      if (interleaved)
        RotateInterleaved<L>(head + 2 * i, n, c + i, s + i);
      else
        RotateSplit<L>(head + i, head + half + i, n, c + i, s + i);
    }
  }
}

}  // namespace
}  // namespace foretoken::kernels::generic
