// SPDX-License-Identifier: Apache-2.0
// kernels/generic/state.h: softplus and advance_state of kernels/kernels.h.
#pragma once

#include "kernels/generic/exp.h"
#include "kernels/generic/log.h"

namespace foretoken::kernels::generic {
namespace {

template <class L>
FORETOKEN_INLINE Sixteen<L> SoftplusOf(const Sixteen<L>& x) {
  const typename L::F zero = L::All(0.0f), one = L::All(1.0f);
  Sixteen<L> e, y;
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) e.of[t] = x.of[t] < zero ? x.of[t] : -x.of[t];
  Exp<L>(e.of);
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) {
    const typename L::F u = one + e.of[t];
    const typename L::F log = LogOf<L>(PartsOf<L>(u)) * (e.of[t] / (u - one));
    y.of[t] = (x.of[t] < zero ? zero : x.of[t]) + (u == one ? e.of[t] : log);
  }
  return y;
}

template <class L>
void Softplus(const float* x, int n, float* y) {
  using X = Sixteen<L>;
  const int whole = n - n % kLanes, rest = n - whole;
  for (int i = 0; i < whole; i += kLanes) SoftplusOf<L>(X::Load(x + i)).Store(y + i);
  if (rest == 0) return;
  SoftplusOf<L>(X::LoadFirst(x + whole, rest)).StoreFirst(rest, y + whole);
}

// n registers of columns from j on. A column's sums go over i in order, so columns may be grouped in
// any way.
template <class L, int n>
FORETOKEN_INLINE void AdvanceColumns(const StateArgs& args, int j) {
  using F = typename L::F;
  const F decay = L::All(args.decay);
  F d[n], out[n];
#pragma GCC unroll 4
  for (int t = 0; t < n; ++t) d[t] = out[t] = L::All(0.0f);
  if (args.corrects) {
    const float* row = args.state + j;
    for (int i = 0; i < args.n_in; ++i, row += args.n_out)
#pragma GCC unroll 4
      for (int t = 0; t < n; ++t)
        d[t] = L::MulAdd(L::Load(row + t * L::kWidth) * decay, args.k[i], d[t]);
#pragma GCC unroll 4
    for (int t = 0; t < n; ++t)
      d[t] = (L::Load(args.v + j + t * L::kWidth) - d[t]) * L::All(args.beta);
  } else {
#pragma GCC unroll 4
    for (int t = 0; t < n; ++t) d[t] = L::Load(args.v + j + t * L::kWidth);
  }
  float* row = args.state + j;
  for (int i = 0; i < args.n_in; ++i, row += args.n_out)
#pragma GCC unroll 4
    for (int t = 0; t < n; ++t) {
      const F s = L::MulAdd(d[t], args.k[i], L::Load(row + t * L::kWidth) * decay);
      L::Store(s, row + t * L::kWidth);
      out[t] = L::MulAdd(s, args.q[i], out[t]);
    }
  if (args.out == nullptr) return;
#pragma GCC unroll 4
  for (int t = 0; t < n; ++t) L::Store(out[t], args.out + j + t * L::kWidth);
}

template <class L>
void AdvanceState(const StateArgs& args) {
  constexpr int kFour = 4 * L::kWidth;
  int j = 0;
  for (; j + kFour <= args.n_out; j += kFour) AdvanceColumns<L, 4>(args, j);
  for (; j < args.n_out; j += kLanes) AdvanceColumns<L, kRegisters<L>>(args, j);
}

}  // namespace
}  // namespace foretoken::kernels::generic
