// SPDX-License-Identifier: Apache-2.0
// kernels/generic/key_values.h: the sums of attention where the values are the first dimensions of
// the keys (values_in_keys of kernels/kernels.h).
//
// Keys lie with positions side by side, so a register cannot hold the dimensions of one position.
// It holds queries instead: acc[d][i] in lane i, p[j][i] in lane i, the value of a dimension in all lanes,
// j ascending. Where a register has 16 lanes, two of them share each value. A tile of at most eight queries
// (the heads that a thread has of one row) has registers of eight lanes, or, where those have 16, two
// dimensions of a query side by side.
#pragma once

#include "kernels/generic/attention_tile.h"
#include "kernels/generic/stored.h"

namespace foretoken::kernels::generic {
namespace {

// The most queries of a tile. 16 lanes of AVX2 are two registers already, and four leave too few for the
// sums: 8 rows of 16 heads behind 8,192 positions take 1.35 of the time with 32 queries there, and 0.85
// with AVX-512 (F16, Zen 5).
template <class L>
constexpr int kKeyValueQueries = kRegisters<L> == 1 ? kQueries : kLanes;

// The lanes that a tile of few queries has for each dimension, and the most queries of such a tile.
constexpr int kFewLanes = kLanes / 2;
constexpr bool IsFew(int n) {
  return n <= kFewLanes;
}
constexpr int LanesOf(int n) {
  return IsFew(n) ? kFewLanes : Padded(n);
}

// Where the sums of a tile of n queries have dimension d of query i.
template <class L>
constexpr int SumAt(int n, int d, int i) {
  if (IsFew(n) && L::kWidth == kLanes) return d / 2 * kLanes + 2 * i + d % 2;
  return d * LanesOf(n) + i;
}

// A block's values for the queries [first, n) of a tile; those before `first` see none of them.
struct KeyValues {
  int first, n;
  const int* visible;   // [n]: query i sees positions [0, visible[i]) of the block; ascending
  const float* p;       // [n, kSlots]
  const float* factor;  // [n]: accumulators are multiplied by it first
  float* acc;           // [n_values, LanesOf(n)], as SumAt says
  int head_dim, n_values;
};

// p with queries in so many lanes, each in kEach of them, and which lanes see a position.
template <int kOfBlock, int kEach = 1>
struct LanesOfBlock {
  float p[kSlots * kOfBlock] = {};  // [kSlots, kOfBlock]
  int shared, end;                  // all queries see positions [0, shared), none sees `end`
  int hidden[kSlots];               // the first lanes, so many, do not see position j >= shared

  explicit LanesOfBlock(const KeyValues& of)
      : shared(of.first == 0 ? of.visible[0] : 0), end(of.visible[of.n - 1]) {
    for (int i = of.first; i < of.n; ++i)
      for (int j = 0; j < of.visible[i]; ++j)
        for (int e = 0; e < kEach; ++e) p[j * kOfBlock + kEach * i + e] = of.p[i * kSlots + j];
    int queries = of.first;
    for (int j = shared; j < end; ++j) {
      while (of.visible[queries] <= j) ++queries;
      hidden[j] = kEach * queries;
    }
  }
};

// Keys of q8_0 and q4_0, four or two times four dimensions of a position side by side.
struct QuadsOf8 {
  static constexpr int kBits = 8;
};
struct QuadsOf4 {
  static constexpr int kBits = 4;
};

// Dimension d of kWidth positions from j on, as integers.
template <class L, class K>
FORETOKEN_INLINE typename L::I LoadIntegers(const std::byte* block, int d, int j) {
  using I = typename L::I;
  constexpr int kOfWord = 32 / K::kBits;
  I words;
  __builtin_memcpy(&words, block + (d / kOfWord * kSlots + j) * 4, sizeof words);
  if constexpr (K::kBits == 8) return words << (24 - 8 * (d % 4)) >> 24;
  const int upper = d % kOfWord / 4;
  return (words >> (8 * (d % 4) + 4 * upper) & 15) - 8;
}

// x[j] = dimension d of the value at position j.
template <class L, class K>
FORETOKEN_INLINE void LoadDimension(const std::byte* block, int head_dim, int d, float* x) {
  constexpr int kWide = kSlots / L::kWidth;
  typename L::F value[kWide];
  if constexpr (requires { K::kBits; }) {
    typename L::F scale[kWide];
    F16::Load<L>(block + kSlots * head_dim * K::kBits / 8 + d / kGroup * kSlots * F16::kBytes,
                 scale);
#pragma GCC unroll 8
    for (int t = 0; t < kWide; ++t)
      value[t] = Floats<L>(LoadIntegers<L, K>(block, d, t * L::kWidth)) * scale[t];
  } else {
    K::template Load<L>(block + d * kSlots * K::kBytes, value);
  }
#pragma GCC unroll 8
  for (int t = 0; t < kWide; ++t) L::Store(value[t], x + t * L::kWidth);
}

// Adds position j of kDims dimensions. kHidden: some lanes do not see it and stay as they are.
template <class L, int kDims, int kRegs, bool kHidden>
FORETOKEN_INLINE void AddPosition(const LanesOfBlock<kRegs * L::kWidth>& lanes, const float* x,
                                  int j, typename L::F (&sum)[kDims][kRegs]) {
  typename L::F p[kRegs];
#pragma GCC unroll 8
  for (int t = 0; t < kRegs; ++t) p[t] = L::Load(lanes.p + (j * kRegs + t) * L::kWidth);
#pragma GCC unroll 8
  for (int d = 0; d < kDims; ++d)
#pragma GCC unroll 8
    for (int t = 0; t < kRegs; ++t) {
      const typename L::F added = L::MulAdd(p[t], x[d * kSlots + j], sum[d][t]);
      if constexpr (kHidden)
        sum[d][t] = L::Select(L::First(lanes.hidden[j] - t * L::kWidth), sum[d][t], added);
      else
        sum[d][t] = added;
    }
}

template <class L, class K, int kRegs>
void AddKeyValuesIn(const KeyValues& of, const std::byte* block) {
  constexpr int kOfBlock = kRegs * L::kWidth, kDims = SumRegisters<L, kRegs>(8);
  const LanesOfBlock<kOfBlock> lanes(of);
  typename L::F factor[kRegs];
#pragma GCC unroll 8
  for (int t = 0; t < kRegs; ++t)
    factor[t] = L::LoadFirst(of.factor + t * L::kWidth, of.n - t * L::kWidth);
  for (int begin = 0; begin < of.n_values; begin += kDims) {
    float x[kDims * kSlots];
    typename L::F sum[kDims][kRegs];
    float* const acc = of.acc + begin * kOfBlock;
#pragma GCC unroll 8
    for (int d = 0; d < kDims; ++d) {
      LoadDimension<L, K>(block, of.head_dim, begin + d, x + d * kSlots);
#pragma GCC unroll 8
      for (int t = 0; t < kRegs; ++t)
        sum[d][t] = L::Load(acc + d * kOfBlock + t * L::kWidth) * factor[t];
    }
    for (int j = 0; j < lanes.shared; ++j) AddPosition<L, kDims, kRegs, false>(lanes, x, j, sum);
    for (int j = lanes.shared; j < lanes.end; ++j)
      AddPosition<L, kDims, kRegs, true>(lanes, x, j, sum);
#pragma GCC unroll 8
    for (int d = 0; d < kDims; ++d)
#pragma GCC unroll 8
      for (int t = 0; t < kRegs; ++t) L::Store(sum[d][t], acc + d * kOfBlock + t * L::kWidth);
  }
}

// x[2 j] and x[2 j + 1] = dimensions d and d + 1 of the value at position j.
template <class L, class K>
FORETOKEN_INLINE void LoadTwoDimensions(const std::byte* block, int head_dim, int d, float* x) {
  float first[kSlots], second[kSlots];
  LoadDimension<L, K>(block, head_dim, d, first);
  LoadDimension<L, K>(block, head_dim, d + 1, second);
  for (int j = 0; j < kSlots; ++j) x[2 * j] = first[j], x[2 * j + 1] = second[j];
}

// Adds position j of twice kPairs dimensions.
template <class L, int kPairs, bool kHidden>
FORETOKEN_INLINE void AddPairs(const LanesOfBlock<kLanes, 2>& lanes, const float* x, int j,
                               typename L::F (&sum)[kPairs]) {
  const typename L::F p = L::Load(lanes.p + j * kLanes);
#pragma GCC unroll 8
  for (int d = 0; d < kPairs; ++d) {
    const typename L::F added = L::Fma(L::AllPairs(x + (d * kSlots + j) * 2), p, sum[d]);
    if constexpr (kHidden)
      sum[d] = L::Select(L::First(lanes.hidden[j]), sum[d], added);
    else
      sum[d] = added;
  }
}

// Twice kPairs dimensions, from `begin` on.
template <class L, class K, int kPairs>
void AddPairsAt(const KeyValues& of, const LanesOfBlock<kLanes, 2>& lanes, typename L::F factor,
                const std::byte* block, int begin) {
  float x[kPairs * kSlots * 2];
  typename L::F sum[kPairs];
  float* const acc = of.acc + begin * kFewLanes;
#pragma GCC unroll 8
  for (int d = 0; d < kPairs; ++d) {
    LoadTwoDimensions<L, K>(block, of.head_dim, begin + 2 * d, x + d * kSlots * 2);
    sum[d] = L::Load(acc + d * kLanes) * factor;
  }
  for (int j = 0; j < lanes.shared; ++j) AddPairs<L, kPairs, false>(lanes, x, j, sum);
  for (int j = lanes.shared; j < lanes.end; ++j) AddPairs<L, kPairs, true>(lanes, x, j, sum);
#pragma GCC unroll 8
  for (int d = 0; d < kPairs; ++d) L::Store(sum[d], acc + d * kLanes);
}

// For a tile of few queries where a register has twice as many lanes. REQUIRES: n_values is a multiple of 8.
template <class L, class K>
void AddKeyValuePairs(const KeyValues& of, const std::byte* block) {
  const LanesOfBlock<kLanes, 2> lanes(of);
  float factors[kLanes] = {};
  for (int i = 0; i < of.n; ++i) factors[2 * i] = factors[2 * i + 1] = of.factor[i];
  const typename L::F factor = L::Load(factors);
  int begin = 0;
  for (; begin + 16 <= of.n_values; begin += 16)
    AddPairsAt<L, K, 8>(of, lanes, factor, block, begin);
  if (begin < of.n_values) AddPairsAt<L, K, 4>(of, lanes, factor, block, begin);
}

template <class L, class K>
void AddKeyValues(const KeyValues& of, const std::byte* block) {
  if (IsFew(of.n)) {
    if constexpr (L::kWidth == kLanes)
      return AddKeyValuePairs<L, K>(of, block);
    else
      return AddKeyValuesIn<L, K, kRegisters<L> / 2>(of, block);
  }
  if constexpr (kLanes < kKeyValueQueries<L>)
    if (of.n > kLanes) return AddKeyValuesIn<L, K, 2 * kRegisters<L>>(of, block);
  AddKeyValuesIn<L, K, kRegisters<L>>(of, block);
}

}  // namespace
}  // namespace foretoken::kernels::generic
