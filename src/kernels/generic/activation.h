// SPDX-License-Identifier: Apache-2.0
// kernels/generic/activation.h: silu_mul, gelu_mul, limited_swiglu and soft_cap of kernels/kernels.h.
#pragma once

#include "kernels/generic/exp.h"

namespace foretoken::kernels::generic {
namespace {

// A gated function: what happens to g and u first, and -t in (g / (1 + Exp(-t))) * u.
struct Unlimited {
  template <class L>
  static FORETOKEN_INLINE void Limit(typename L::F&, typename L::F&) {}
};
struct Silu : Unlimited {
  template <class L>
  static FORETOKEN_INLINE typename L::F Minus(typename L::F g) {
    return -g;
  }
};
struct Gelu : Unlimited {
  template <class L>
  static FORETOKEN_INLINE typename L::F Minus(typename L::F g) {
    const typename L::F cubic = L::Fma(g * g, L::All(0.044715f), L::All(1.0f));
    return -((g * L::All(1.5957691216f)) * cubic);
  }
};

struct LimitedSilu {
  template <class L>
  static FORETOKEN_INLINE void Limit(typename L::F& g, typename L::F& u) {
    g = L::AtMost(g, 7.0f);
    u = -L::AtMost(-L::AtMost(u, 7.0f), 7.0f) + L::All(1.0f);
  }
  template <class L>
  static FORETOKEN_INLINE typename L::F Minus(typename L::F g) {
    return g * L::All(-1.702f);
  }
};

template <class L, class A>
FORETOKEN_INLINE Sixteen<L> Gated(Sixteen<L> g, Sixteen<L> u) {
  Sixteen<L> y;
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) A::template Limit<L>(g.of[t], u.of[t]);
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) y.of[t] = A::template Minus<L>(g.of[t]);
  Exp<L>(y.of);
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) y.of[t] = (g.of[t] / (L::All(1.0f) + y.of[t])) * u.of[t];
  return y;
}

template <class L, class A>
FORETOKEN_INLINE void GatedRow(const float* g, const float* u, int n, float* y) {
  using X = Sixteen<L>;
  const int whole = n - n % kLanes, rest = n - whole;
  for (int i = 0; i < whole; i += kLanes) Gated<L, A>(X::Load(g + i), X::Load(u + i)).Store(y + i);
  if (rest == 0) return;
  Gated<L, A>(X::LoadFirst(g + whole, rest), X::LoadFirst(u + whole, rest))
      .StoreFirst(rest, y + whole);
}

template <class L>
void SiluMul(const float* g, const float* u, int n, float* y) {
  GatedRow<L, Silu>(g, u, n, y);
}

template <class L>
void GeluMul(const float* g, const float* u, int n, float* y) {
  GatedRow<L, Gelu>(g, u, n, y);
}

template <class L>
void LimitedSwiglu(const float* g, const float* u, int n, float* y) {
  GatedRow<L, LimitedSilu>(g, u, n, y);
}

// CAP; factor = 2 / cap.
template <class L>
FORETOKEN_INLINE Sixteen<L> Capped(Sixteen<L> x, float cap, float factor) {
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) x.of[t] = x.of[t] * L::All(factor);
  Exp<L>(x.of);
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t)
    x.of[t] = L::All(cap) * (L::All(1.0f) - L::All(2.0f) / (x.of[t] + L::All(1.0f)));
  return x;
}

template <class L>
void SoftCap(float* x, int n, float cap) {
  using X = Sixteen<L>;
  const int whole = n - n % kLanes, rest = n - whole;
  const float factor = 2.0f / cap;
  for (int i = 0; i < whole; i += kLanes) Capped<L>(X::Load(x + i), cap, factor).Store(x + i);
  if (rest == 0) return;
  Capped<L>(X::LoadFirst(x + whole, rest), cap, factor).StoreFirst(rest, x + whole);
}

}  // namespace
}  // namespace foretoken::kernels::generic
