// SPDX-License-Identifier: Apache-2.0
// kernels/generic/state.h: softplus, convolve and advance_state of kernels/kernels.h.
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

// Columns [i, i + n) of one position; n is at most 16. The first tap is that of the oldest position.
template <class L, bool kWhole>
FORETOKEN_INLINE Sixteen<L> Convolved(const ConvolutionArgs& args, const float* const* x, int first,
                                      int i, int n) {
  using X = Sixteen<L>;
  const auto load = [n](const float* p) { return kWhole ? X::Load(p) : X::LoadFirst(p, n); };
  const int column = args.column + i;
  X y = args.bias == nullptr ? X::All(0.0f) : load(args.bias + column);
  for (int j = first; j < args.n_taps; ++j) {
    const X tap = load(args.weights + j * args.weights_stride + column), at = load(x[j] + column);
#pragma GCC unroll 4
    for (int t = 0; t < kRegisters<L>; ++t) y.of[t] = y.of[t] + tap.of[t] * at.of[t];
  }
  if (!args.activates) return y;
  X e;
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) e.of[t] = -y.of[t];
  Exp<L>(e.of);
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) y.of[t] = y.of[t] / (L::All(1.0f) + e.of[t]);
  return y;
}

template <class L>
void Convolve(const ConvolutionArgs& args) {
  constexpr int kAhead = 4;
  const int whole = args.n - args.n % kLanes, rest = args.n - whole;
  for (int t = 0; t < args.n_steps; ++t) {
    const float* const* const x = args.x + t;
    float* const y = args.y + t * args.y_stride;
    // Inputs of different positions lie far from each other.
    if (t + kAhead < args.n_steps)
      for (int i = 0; i < args.n; i += kLanes)
        L::Prefetch(x[args.n_taps - 1 + kAhead] + args.column + i);
    int first = 0;
    while (first < args.n_taps && x[first] == nullptr) ++first;
    for (int i = 0; i < whole; i += kLanes)
      Convolved<L, true>(args, x, first, i, kLanes).Store(y + i);
    if (rest > 0) Convolved<L, false>(args, x, first, whole, rest).StoreFirst(rest, y + whole);
  }
}

// Positions [begin, end) of n registers of columns from j on. They begin with the state `from` and
// leave theirs in `to`, which may be the same. A column's sums go over i in order, so columns may be
// grouped in any way.
template <class L, int n, bool kCorrects>
struct StateColumns {
  using F = typename L::F;
  const StateArgs& args;
  const int j;
  F d[n];                               // what the next position adds, by column
  const int tile = args.n_in * kLanes;  // numbers of 16 columns

  // Register t of a row of these columns.
  template <class Number>
  FORETOKEN_INLINE Number* At(Number* row, int t) const {
    return row + t / kRegisters<L> * tile + t % kRegisters<L> * L::kWidth;
  }

  // d of a position whose known values are given.
  FORETOKEN_INLINE void Correct(const F (&known)[n], int step) {
    const float* const v = args.v + step * args.n_out + j;
#pragma GCC unroll 4
    for (int t = 0; t < n; ++t) {
      d[t] = L::Load(v + t * L::kWidth);
      if (kCorrects) d[t] = (d[t] - known[t]) * L::All(args.beta[step]);
    }
  }

  FORETOKEN_INLINE void Begin(const float* from, int step) {
    const F decay = L::All(args.decay[step]);
    const float* const k = args.k + step * args.n_in;
    F known[n];
#pragma GCC unroll 4
    for (int t = 0; t < n; ++t) known[t] = L::All(0.0f);
    if (kCorrects)
      for (int i = 0; i < args.n_in; ++i, from += kLanes)
#pragma GCC unroll 4
        for (int t = 0; t < n; ++t)
          known[t] = L::MulAdd(L::Load(At(from, t)) * decay, k[i], known[t]);
    Correct(known, step);
  }

  // One position. Between two of them `to` holds the state that is already decayed for the next one,
  // whose known values are added up here, so that the state is read once.
  template <bool kFirst, bool kLast>
  FORETOKEN_INLINE void Step(const float* from, float* to, int step) {
    const F decay = L::All(args.decay[step]), next = L::All(args.decay[step + (kLast ? 0 : 1)]);
    const float *const q = args.q + step * args.n_in, *const k = args.k + step * args.n_in;
    F out[n], known[n];
#pragma GCC unroll 4
    for (int t = 0; t < n; ++t) out[t] = known[t] = L::All(0.0f);
    for (int i = 0; i < args.n_in; ++i, from += kLanes, to += kLanes)
#pragma GCC unroll 4
      for (int t = 0; t < n; ++t) {
        if (kFirst && t % kRegisters<L> == 0) L::Prefetch(At(from, t + n));  // the next columns
        F s = L::Load(At(from, t));
        if (kFirst) s = s * decay;
        s = L::MulAdd(d[t], k[i], s);
        out[t] = L::MulAdd(s, q[i], out[t]);
        if (!kLast) s = s * next;
        if (!kLast && kCorrects) known[t] = L::MulAdd(s, k[args.n_in + i], known[t]);
        L::Store(s, At(to, t));
      }
    if (step >= args.n_silent) {
      float* const y = args.out + (step - args.n_silent) * args.out_stride + j;
#pragma GCC unroll 4
      for (int t = 0; t < n; ++t) L::Store(out[t], y + t * L::kWidth);
    }
    if (!kLast) Correct(known, step + 1);
  }

  void Run(const float* from, float* to, int begin, int end) {
    from += j / kLanes * tile, to += j / kLanes * tile;
    Begin(from, begin);
    if (end - begin == 1) return Step<true, true>(from, to, begin);
    Step<true, false>(from, to, begin);
    for (int step = begin + 1; step < end - 1; ++step) Step<false, false>(to, to, step);
    Step<false, true>(to, to, end - 1);
  }
};

template <class L, int n, bool kCorrects>
void AdvanceColumns(const StateArgs& args, int j) {
  StateColumns<L, n, kCorrects> columns = {.args = args, .j = j, .d = {}};
  if (args.n_kept > 0) columns.Run(args.state, args.state, 0, args.n_kept);
  if (args.n_kept < args.n_steps) columns.Run(args.state, args.work, args.n_kept, args.n_steps);
}

template <class L, bool kCorrects>
void AdvanceAll(const StateArgs& args) {
  constexpr int kColumns = L::kStateGroups * kLanes;
  int j = 0;
  for (; j + kColumns <= args.n_out; j += kColumns)
    AdvanceColumns<L, L::kStateGroups * kRegisters<L>, kCorrects>(args, j);
  for (; j < args.n_out; j += kLanes) AdvanceColumns<L, kRegisters<L>, kCorrects>(args, j);
}

template <class L>
void AdvanceState(const StateArgs& args) {
  if (args.beta != nullptr)
    AdvanceAll<L, true>(args);
  else
    AdvanceAll<L, false>(args);
}

}  // namespace
}  // namespace foretoken::kernels::generic
