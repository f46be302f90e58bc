// SPDX-License-Identifier: Apache-2.0
// kernels/generic/attention_tile.h: the queries that attention works on at a time, and how the passes
// over a block of the cache go through them.
#pragma once

#include "kernels/generic/cache.h"

namespace foretoken::kernels::generic {
namespace {

constexpr int kQueries = kAttentionQueries;
static_assert(kQueries % kLanes == 0);

// n rounded up to registers of all instruction sets.
constexpr int Padded(int n) {
  return (n + kLanes - 1) / kLanes * kLanes;
}

// Queries as integers, for keys of q8_0 and q4_0.
struct IntegerQueries {
  std::int32_t* words;  // [head_dim / 32, kQueries, 8, kQuadWords]: four dimensions each
  std::int32_t* start;  // [head_dim / 32, kQueries]: the sum over 32 dimensions starts from it
  float* scale;         // [head_dim / 32, kQueries]
};

// Weights as integers, for values of q8_0 and q4_0.
struct IntegerWeights {
  std::int8_t* of;  // [head_dim / 32, kQueries, 32 positions]
  float* unit;      // [head_dim / 32, kQueries]
  float* ratio;  // [head_dim / 32, 32]: the scales of a block, in parts of the largest, times 127
  float units;   // of the products of weights and values in the largest scale
};

// Up to kQueries queries, in order of rows. Each has an accumulator [head_dim], 32 scores, and the state of
// the running softmax.
struct Tile {
  const AttentionArgs* args;
  int n;
  const float* q[kQueries];
  float* out[kQueries];
  float sink[kQueries];
  int length[kQueries];
  // The query sees positions [hidden, visible) of the present block. Only RunEdgeBlocks sets and
  // reads `hidden`; it is 0 elsewhere.
  int hidden[kQueries], visible[kQueries];
  float *acc, *p;                     // [kQueries, head_dim] or as in KeyValues, [kQueries, 32]
  float *max, *sum, *factor, *share;  // [kQueries]; `share` where values are integers
  bool steady;  // all factors are 1: no query's largest score has risen. Only integer values ask.
  int keys_ahead, values_ahead;  // positions from a block to the one that memory is asked for
  const std::byte *next_keys, *next_values;  // that block
  IntegerQueries queries;
  IntegerWeights weights;

  int groups() const { return args->head_dim / kGroup; }
  // Whether the weights of a block are relative to the block's own largest score.
  bool has_integer_values() const {
    return args->values_in_keys == 0 && tensor::HasScales(args->v_type);
  }
  bool has_fours() const { return args->v_type == tensor::KvType::kQ4_0; }
  // The scales of a block of integer values.
  const std::byte* ScalesOf(const std::byte* values) const {
    return values + kSlots * args->head_dim / (has_fours() ? 2 : 1);
  }
};

// Brings a later block closer while this one is worked on. Each pass over a block asks for the bytes of the
// later one in their order, wherever its own lie.
template <class L, int kBytes>
FORETOKEN_INLINE void PrefetchBytes(const std::byte* address) {
#pragma GCC unroll 8
  for (int i = 0; i < kBytes; i += 64) L::PrefetchFar(address + i);
}
// Keys and values of integers, for which L may have a way of its own.
template <class L, int kBytes>
FORETOKEN_INLINE void PrefetchIntegers(const std::byte* address) {
  if constexpr (requires { L::PrefetchIntegers(address); })
#pragma GCC unroll 8
    for (int i = 0; i < kBytes; i += 64) L::PrefetchIntegers(address + i);
  else
    PrefetchBytes<L, kBytes>(address);
}

template <class L, int kCount, int kWide>
FORETOKEN_INLINE void Clear(typename L::F (&sum)[kCount][kWide]) {
#pragma GCC unroll 8
  for (int i = 0; i < kCount; ++i)
#pragma GCC unroll 16
    for (int t = 0; t < kWide; ++t) sum[i][t] = L::All(0.0f);
}

// ---- Rows of 32 scores, one for each query ----------------------------------------------------------

// Rows whose exponentials are computed together, so that they hide each other's latency.
template <class L>
constexpr int kExpRows = L::kWidth == 16 ? 2 : 1;

// The sum of a row by lanes, in the lanes of one register.
template <class L>
FORETOKEN_INLINE typename L::F SumOfRow(typename L::F* row) {
#pragma GCC unroll 4
  for (int n = kBlockRegisters<L> / 2; n > 0; n /= 2)
#pragma GCC unroll 4
    for (int t = 0; t < n; ++t) row[t] = row[t] + row[t + n];
  return row[0];
}

// sums[i] = the sum of row i in [first, n), and 0 for the other rows. work(i, end, to) works on some
// rows from i on, at most up to `end`, gives SumOfRow of each to `to`, and returns how many they are.
template <class L, class Work>
FORETOKEN_INLINE void SumsOfRows(int first, int n, Work work, float* sums) {
  for (int begin = 0; begin < Padded(n); begin += L::kWidth) {
    if (begin >= n) {
      L::Store(L::All(0.0f), sums + begin);
      continue;
    }
    typename L::F rows[L::kWidth];
    const int end = begin + Bounded(n - begin, L::kWidth);
    int i = begin + Bounded(first - begin, end - begin);
    for (int t = begin; t < i; ++t) rows[t - begin] = L::All(0.0f);
    for (int t = end; t < begin + L::kWidth; ++t) rows[t - begin] = L::All(0.0f);
    while (i < end) i += work(i, end, rows + (i - begin));
    L::Store(L::FoldRows(rows, [](typename L::F x, typename L::F y) { return x + y; }),
             sums + begin);
  }
}

// ---- Groups of queries ------------------------------------------------------------------------------

// A pass over a block for the queries from `first` on.
using BlockPass = void (*)(const Tile&, int first, const std::byte* block);

// Pass::Run<n>(tile, i, block), 1 <= n <= kMost.
template <class Pass, int kMost>
FORETOKEN_INLINE void RunGroup(int n, const Tile& tile, int i, const std::byte* block) {
  if constexpr (kMost > 1)
    if (n < kMost) return RunGroup<Pass, kMost - 1>(n, tile, i, block);
  Pass::template Run<kMost>(tile, i, block);
}

// Pass::Run for all queries from i on, in as few groups as L::kTogether allows, whose sizes differ by
// at most one.
template <class L, class Pass>
void InGroups(const Tile& tile, int i, const std::byte* block) {
  for (int groups = (tile.n - i + L::kTogether - 1) / L::kTogether; groups > 0; --groups) {
    const int n = (tile.n - i + groups - 1) / groups;
    RunGroup<Pass, L::kTogether>(n, tile, i, block);
    i += n;
  }
}

// The registers that each of kCount queries has for its sums: `most`, halved until all fit.
template <class L, int kCount>
constexpr int SumRegisters(int most) {
  while (most * kCount > L::kAccumulators) most /= 2;
  return most;
}

}  // namespace
}  // namespace foretoken::kernels::generic
