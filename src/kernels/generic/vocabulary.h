// SPDX-License-Identifier: Apache-2.0
// kernels/generic/vocabulary.h: the passes over the vocabulary of kernels/kernels.h, but for race.
#pragma once

#include "kernels/generic/exp.h"
#include "kernels/generic/log.h"

namespace foretoken::kernels::generic {
namespace {

constexpr int kChunk = 256;  // elements that find_cumulative adds at once
constexpr int kMaxBlock = 64;
constexpr int kArgmaxBlock = 1024;

// The first n values, and `rest` in the other lanes.
template <class L>
FORETOKEN_INLINE typename L::F LoadOr(const float* p, int n, float rest) {
  return L::Select(L::First(n), L::LoadFirst(p, n), L::All(rest));
}

// Four registers take turns, so that one comparison does not wait for the one before.
template <class L>
float LargestIn(const float* x, int n) {
  constexpr int kWidth = L::kWidth;
  typename L::F m[4];
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) m[j] = L::All(kMinusInf);
  int i = 0;
  for (; i + 4 * kWidth <= n; i += 4 * kWidth)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) m[j] = LargerOr<L>(L::Load(x + i + j * kWidth), m[j]);
  for (; i < n; i += kWidth) m[0] = LargerOr<L>(LoadOr<L>(x + i, n - i, kMinusInf), m[0]);
  return L::FoldMax(LargerOr<L>(LargerOr<L>(m[0], m[1]), LargerOr<L>(m[2], m[3])));
}

template <class L>
std::int32_t Argmax(const float* x, int n) {
  float max = kMinusInf;
  int begin = 0;  // the first block that holds the maximum
  for (int i = 0; i < n; i += kArgmaxBlock) {
    const float m = LargestIn<L>(x + i, n - i < kArgmaxBlock ? n - i : kArgmaxBlock);
    if (m > max) {
      max = m;
      begin = i;
    }
  }
  if (max == kMinusInf) return 0;
  for (int i = begin;; i += L::kWidth) {
    const auto equal = L::Equal(LoadOr<L>(x + i, n - i, kMinusInf), L::All(max));
    if (L::Any(equal)) return i + __builtin_ctz(L::Bits(equal));
  }
}

template <class L>
float Max(const float* x, int n) {
  return LargestIn<L>(x, n) + 0.0f;  // adding 0 makes -0 into +0
}

// The exponentials of some groups of 16, which x holds at first.
template <class L, int n>
FORETOKEN_INLINE void ScaledExp(typename L::F (&x)[n], typename L::F max, typename L::F factor) {
#pragma GCC unroll 8
  for (int t = 0; t < n; ++t) x[t] = (x[t] - max) * factor;
  Exp<L>(x);
}

template <class L>
double ExpSum(const float* x, int n, float max, float inv_temperature, float* p) {
  using X = Sixteen<L>;
  constexpr int kGroups = L::kExpGroups;  // of 16, that go through Exp together
  constexpr int kStep = kGroups * kLanes;
  const typename L::F top = L::All(max), factor = L::All(inv_temperature);
  DoubleSums<L> sum;
  int i = 0;
  for (; i + kStep <= n; i += kStep) {
    typename L::F e[kGroups * kRegisters<L>];
#pragma GCC unroll 8
    for (int t = 0; t < kGroups * kRegisters<L>; ++t) e[t] = L::Load(x + i + t * L::kWidth);
    ScaledExp<L>(e, top, factor);
#pragma GCC unroll 8
    for (int t = 0; t < kGroups * kRegisters<L>; ++t) L::Store(e[t], p + i + t * L::kWidth);
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) sum.Add(e + g * kRegisters<L>);
  }
  for (; i < n; i += kLanes) {
    X e = X::LoadFirst(x + i, n - i);
    ScaledExp<L>(e.of, top, factor);
#pragma GCC unroll 4
    for (int t = 0; t < kRegisters<L>; ++t)
      e.of[t] = L::Keep(L::First(n - i - t * L::kWidth), e.of[t]);
    e.StoreFirst(n - i, p + i);
    sum.Add(e.of);
  }
  return sum.Fold();
}

template <class L>
void Scale(float* x, int n, float factor) {
  const typename L::F f = L::All(factor);
  int i = 0;
  for (; i + L::kWidth <= n; i += L::kWidth) L::Store(L::Load(x + i) * f, x + i);
  if (i < n) L::StoreFirst(L::LoadFirst(x + i, n - i) * f, n - i, x + i);
}

template <class L>
Finiteness FinitenessIn(const float* x, int n) {
  using I = typename L::I;
  using U = typename L::U;
  constexpr std::uint32_t kSign = 0x80000000u;
  I most_signed = {};
  U most_unsigned = {};
  const auto take = [&](typename L::F v) {
    const I as_signed = __builtin_bit_cast(I, v);
    const U as_unsigned = __builtin_bit_cast(U, v);
    most_signed = as_signed > most_signed ? as_signed : most_signed;
    most_unsigned = as_unsigned > most_unsigned ? as_unsigned : most_unsigned;
  };
  int i = 0;
  for (; i + L::kWidth <= n; i += L::kWidth) take(L::Load(x + i));
  if (i < n) take(L::LoadFirst(x + i, n - i));
  // With their signs turned, unsigned numbers have the order of signed ones.
  const auto turned = L::LargestOf(__builtin_bit_cast(I, most_unsigned ^ kSign));
  return FinitenessOf(L::LargestOf(most_signed), static_cast<std::uint32_t>(turned) ^ kSign);
}

template <class L>
double Sum(const float* x, int n) {
  const int whole = n - n % kLanes;
  DoubleSums<L> sum;
  for (int i = 0; i < whole; i += kLanes) sum.Add(Sixteen<L>::Load(x + i).of);
  if (whole < n) sum.Add(Sixteen<L>::LoadFirst(x + whole, n - whole).of);
  return sum.Fold();
}

template <class L>
FORETOKEN_INLINE Sixteen<L> PositiveDifference(const Sixteen<L>& p, const Sixteen<L>& q) {
  Sixteen<L> r;
#pragma GCC unroll 4
  for (int t = 0; t < kRegisters<L>; ++t) r.of[t] = LargerOr<L>(p.of[t] - q.of[t], L::All(0.0f));
  return r;
}

template <class L>
double Residual(const float* p, const float* q, int n, float* r) {
  using X = Sixteen<L>;
  const int whole = n - n % kLanes, rest = n - whole;
  DoubleSums<L> sum;
  for (int i = 0; i < whole; i += kLanes) {
    const X difference = PositiveDifference<L>(X::Load(p + i), X::Load(q + i));
    difference.Store(r + i);
    sum.Add(difference.of);
  }
  if (rest > 0) {
    const X last =
        PositiveDifference<L>(X::LoadFirst(p + whole, rest), X::LoadFirst(q + whole, rest));
    last.StoreFirst(rest, r + whole);
    sum.Add(last.of);
  }
  return sum.Fold();
}

template <class L>
double Entropy(const float* p, int n) {
  const int whole = n - n % kLanes;
  DoubleSums<L> sum;
  const auto add = [&](Sixteen<L> x) {
#pragma GCC unroll 4
    for (int t = 0; t < kRegisters<L>; ++t) x.of[t] = TimesLog<L>(x.of[t]);
    sum.Add(x.of);
  };
  for (int i = 0; i < whole; i += kLanes) add(Sixteen<L>::Load(p + i));
  if (whole < n) add(Sixteen<L>::LoadFirst(p + whole, n - whole));
  return 0.0 - sum.Fold();
}

inline std::int32_t LastPositive(const float* p, int n) {
  for (int i = n - 1; i >= 0; --i)
    if (p[i] > 0.0f) return i;
  return -1;
}

template <class L>
std::int32_t FindCumulative(const float* p, int n, double target) {
  double before = 0.0;
  for (int begin = 0; begin < n; begin += kChunk) {
    const int size = n - begin < kChunk ? n - begin : kChunk;
    const double after = before + Sum<L>(p + begin, size);
    if (after > target) {
      for (int i = begin; i < begin + size; ++i) {
        before += static_cast<double>(p[i]);
        if (before > target) return i;
      }
      return LastPositive(p, begin + size);  // the sum in order fell short of the sum by lanes
    }
    before = after;
  }
  return LastPositive(p, n);
}

template <class L>
void BlockMax(const float* x, int n, float* maxima) {
  for (int begin = 0; begin < n; begin += kMaxBlock)
    maxima[begin / kMaxBlock] = Max<L>(x + begin, n - begin < kMaxBlock ? n - begin : kMaxBlock);
}

template <class L>
int CollectAtLeast(const float* x, int n, float threshold, std::int32_t* ids, int room) {
  const typename L::F t = L::All(threshold);
  int found = 0;
  const auto take = [&](typename L::Mask mask, int first) {
    if (found >= room) {  // only counted, as when a threshold is searched for
      found += __builtin_popcount(L::Bits(mask));
      return;
    }
    for (unsigned hits = L::Bits(mask); hits != 0; hits &= hits - 1, ++found)
      if (found < room) ids[found] = first + __builtin_ctz(hits);
  };
  int i = 0;
  for (; i + L::kWidth <= n; i += L::kWidth) {
    const typename L::Mask hits = L::AtLeast(L::Load(x + i), t);
    if (L::Any(hits)) take(hits, i);
  }
  if (i < n) take(L::Both(L::First(n - i), L::AtLeast(L::LoadFirst(x + i, n - i), t)), i);
  return found;
}

}  // namespace
}  // namespace foretoken::kernels::generic
