// SPDX-License-Identifier: Apache-2.0
// kernels/generic/float_attention.h: attention over keys and values of f32, f16 and bf16. The products are
// fma of floats, in the order of dimensions and of positions (kernels/kernels.h).
//   scores   positions in the lanes, q[d] in all lanes, d ascending
//   values   dimensions in the lanes, p[j] in all lanes, j ascending
#pragma once

#include "kernels/generic/attention_tile.h"
#include "kernels/generic/stored.h"

namespace foretoken::kernels::generic {
namespace {

// to + x * *y, rounded once.
template <class L>
FORETOKEN_INLINE typename L::F AddScaled(typename L::F x, const float* y, typename L::F to) {
  if constexpr (requires { L::MulAddAt(x, y, to); })
    return L::MulAddAt(x, y, to);
  else
    return L::MulAdd(x, *y, to);
}

// sum[i][t] += q[i][d] * k[d][t kWidth ...] for all d in order. Asks for as many bytes at `next` as it reads.
template <class L, class K, int kCount, int kWide>
FORETOKEN_INLINE void AddProducts(const float* const* q, const std::byte* k, const std::byte* next,
                                  int head_dim, typename L::F (&sum)[kCount][kWide]) {
  constexpr int kRead = kWide * L::kWidth * static_cast<int>(K::kBytes);
  for (int d = 0; d < head_dim; ++d) {
    const std::byte* at = k + d * kSlots * K::kBytes;
    PrefetchBytes<L, kRead>(next + d * kRead);
    typename L::F x[kWide];
    K::template Load<L>(at, x);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 16
      for (int t = 0; t < kWide; ++t) sum[i][t] = AddScaled<L>(x[t], q[i] + d, sum[i][t]);
    }
  }
}

// The scores of positions [j, j + kWide kWidth).
template <class L, class K, int kCount, int kWide>
void ScoresAt(const Tile& tile, int first, const std::byte* block, int j) {
  const int head_dim = tile.args->head_dim;
  const float* const* q = tile.q + first;
  typename L::F acc[kCount][kWide];
  Clear<L>(acc);
  AddProducts<L, K>(q, block + j * K::kBytes, tile.next_keys + j * head_dim * K::kBytes, head_dim,
                    acc);
  const typename L::F scale = L::All(tile.args->scale);
  float* s = tile.p + first * kSlots + j;
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t) L::Store(scale * acc[i][t], s + i * kSlots + t * L::kWidth);
}

template <class L, class K>
struct Scores {
  template <int kCount>
  static void Run(const Tile& tile, int first, const std::byte* block) {
    constexpr int kWide = SumRegisters<L, kCount>(kSlots / L::kWidth);
    for (int j = 0; j < kSlots; j += kWide * L::kWidth)
      ScoresAt<L, K, kCount, kWide>(tile, first, block, j);
  }
};

// ---- Values -------------------------------------------------------------------------------------

// Positions [begin, end) of the block. The range that begins at 0 scales the accumulators by
// `factor` first.
struct Range {
  int begin, end;
};

// x = the values at `from`: kWide registers, or the last 8 dimensions in the lower half of one
// register (kEight).
template <class L, class V, int kWide, bool kEight>
FORETOKEN_INLINE void LoadValues(const std::byte* from, typename L::F (&x)[kWide]) {
  if constexpr (kEight) {
    std::byte padded[L::kWidth * V::kBytes] = {};
    __builtin_memcpy(padded, from, 8 * V::kBytes);
    V::template Load<L>(padded, x);
  } else {
    V::template Load<L>(from, x);
  }
}

// Dimensions [d, d + kWide kWidth), or [d, d + 8) where kEight.
template <class L, class V, int kCount, int kWide, bool kEight = false>
void ValuesAt(const Tile& tile, int first, const std::byte* block, Range range, int d) {
  constexpr int kWidth = L::kWidth;
  const int head_dim = tile.args->head_dim;
  float* out = tile.acc + first * head_dim + d;
  const float* p = tile.p + first * kSlots;
  typename L::F acc[kCount][kWide];
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i) {
    const float c = range.begin == 0 ? tile.factor[first + i] : 1.0f;
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t) {
      const float* from = out + i * head_dim + t * kWidth;
      acc[i][t] = (kEight ? L::LoadFirst(from, 8) : L::Load(from)) * L::All(c);
    }
  }
  const std::byte* from = block + (range.begin * head_dim + d) * V::kBytes;
  constexpr int kRead = kWide * kWidth * static_cast<int>(V::kBytes);
  const std::byte* next = tile.next_values + d * kSlots * V::kBytes + range.begin * kRead;
  const float* const end = p + range.end;
  for (p += range.begin; p != end; ++p, from += head_dim * V::kBytes, next += kRead) {
    PrefetchBytes<L, kRead>(next);
    typename L::F x[kWide];
    LoadValues<L, V, kWide, kEight>(from, x);
#pragma GCC unroll 8
    for (int i = 0; i < kCount; ++i) {
#pragma GCC unroll 16
      for (int t = 0; t < kWide; ++t) acc[i][t] = AddScaled<L>(x[t], p + i * kSlots, acc[i][t]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t) {
      float* to = out + i * head_dim + t * kWidth;
      kEight ? L::StoreFirst(acc[i][t], 8, to) : L::Store(acc[i][t], to);
    }
}

// All dimensions from d on, in steps as wide as kWide allows.
template <class L, class V, int kCount, int kWide>
void ValuesFrom(const Tile& tile, int first, const std::byte* block, Range range, int d) {
  constexpr int kStep = kWide * L::kWidth;
  constexpr int kLeast = 8;  // of which head_dim is a multiple
  const int head_dim = tile.args->head_dim;
  for (; d + kStep <= head_dim; d += kStep)
    ValuesAt<L, V, kCount, kWide>(tile, first, block, range, d);
  if (d == head_dim) return;
  if constexpr (kWide > 1 && kStep > kLeast)
    ValuesFrom<L, V, kCount, kWide / 2>(tile, first, block, range, d);
  else if constexpr (kStep > kLeast)
    ValuesAt<L, V, kCount, 1, true>(tile, first, block, range, d);
}

// The registers of values that kCount queries share.
template <class L, int kCount>
constexpr int kValueRegisters = SumRegisters<L, kCount>(8);

template <class L, class V>
struct Values {
  template <int kCount>
  static void Run(const Tile& tile, int first, const std::byte* block) {
    const int shared = tile.visible[first];  // rows are ascending, so the first one sees least
    ValuesFrom<L, V, kCount, kValueRegisters<L, kCount>>(tile, first, block, {0, shared}, 0);
    for (int i = first + 1; i < first + kCount; ++i)
      if (tile.visible[i] > shared)
        ValuesFrom<L, V, 1, kValueRegisters<L, 1>>(tile, i, block, {shared, tile.visible[i]}, 0);
  }
};

// A block where the queries see parts of the block, and where the accumulators are scaled already
// (`factor` is 1). The queries share the positions that all of them see.
template <class L, class V>
struct PartValues {
  template <int kCount>
  static void Run(const Tile& tile, int first, const std::byte* block) {
    const auto alone = [&](int i, Range range) {
      if (range.begin < range.end)
        ValuesFrom<L, V, 1, kValueRegisters<L, 1>>(tile, i, block, range, 0);
    };
    // Rows are ascending: the last one's window begins last, and the first one ends first.
    const Range shared = {tile.hidden[first + kCount - 1], tile.visible[first]};
    if (shared.begin >= shared.end) {
      for (int i = first; i < first + kCount; ++i) alone(i, {tile.hidden[i], tile.visible[i]});
      return;
    }
    for (int i = first; i < first + kCount; ++i) alone(i, {tile.hidden[i], shared.begin});
    ValuesFrom<L, V, kCount, kValueRegisters<L, kCount>>(tile, first, block, shared, 0);
    for (int i = first; i < first + kCount; ++i) alone(i, {shared.end, tile.visible[i]});
  }
};

}  // namespace
}  // namespace foretoken::kernels::generic
