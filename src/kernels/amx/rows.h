// SPDX-License-Identifier: Apache-2.0
// kernels/amx/rows.h: quantised products by a unit of tile registers: the processor's, or an
// emulated one that lets any machine with AVX-512 test this code.
//
// A register holds 16 rows of 64 bytes. Per run of 32 k:
//   A  [R rows][32 k]               signed activations
//   B  [8 words of 4 k][16 outputs][4]  signed weights, without the offset that tiles add to them
//   C  [R rows][16 outputs] int32   = A . B, exact, so it does not matter who computes it
// Four runs are under way at a time, in C 0 to 3. The conversion and the fma that follow are those
// of AVX-512, in the same order: the same bits. For types with one scale a run: not Q6_K.
//
// Unit: static Configure(rows), Release(), Load<register>(p, stride), Zero<register>(),
//       Dot<c, a, b>() and Store<register>(p), registers 0-3: C, 4-5: A, 6-7: B.
#pragma once

#include "kernels/avx512/row_blocks.h"
#include "kernels/avx512/weights.h"

namespace foretoken::kernels::amx {
namespace {

using avx512::kBlock;
using avx512::Scales;

constexpr int kRows = 16;
constexpr int kGroup = 4;
constexpr int kPackRuns = 1024;

// A run of the rows: what the unit reads, and what follows it.
template <typename Type>
struct alignas(64) PackedRun {
  std::int8_t q[kRows][kBlock];
  float d[kRows];
  float xs[Type::kMinimum ? kRows : 1];
};

template <typename Type>
void Pack(const MatmulArgs& a, int row, int n_rows, int run, int n, PackedRun<Type>* out) {
  const std::int64_t n_runs = a.k / kBlock;
  for (int r = 0; r < n_rows; ++r) {
    const std::int64_t first = (row + r) * n_runs + run;
    for (int b = 0; b < n; ++b) {
      PackedRun<Type>& to = out[b];
      __builtin_memcpy(to.q[r], a.xq + (first + b) * kBlock, kBlock);
      to.d[r] = a.xd[first + b];
      if constexpr (Type::kMinimum)
        to.xs[r] = to.d[r] * static_cast<float>(a.xs[2 * (first + b) + 1]);
    }
  }
}

// The signed weights of a run as the unit reads them. Tiles hold them with an offset; to take it
// off eight registers costs less than to take its product off the sums of up to 16 rows.
template <typename Type>
FORETOKEN_INLINE void Spread(const typename Type::Tile& w, int run, std::int8_t* to) {
  __m512i q[8];
  Type::Weights(w, run, q);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    if constexpr (Type::kOffset != 0)
      q[i] = _mm512_sub_epi8(q[i], _mm512_set1_epi8(static_cast<char>(Type::kOffset)));
    _mm512_store_si512(to + 64 * i, q[i]);
  }
}

// What the tile unit does for a group of up to four runs: sums of [runs][rows][16 outputs].
template <typename Unit, typename Type>
struct Group {
  alignas(64) std::int8_t weights[kGroup][512];
  alignas(64) std::int32_t sums[kGroup][kRows][16];

  // Runs [run, run + n) of the strip.
  FORETOKEN_INLINE void Multiply(const typename Type::Tile* w, const PackedRun<Type>* x, int run,
                                 int n) {
    for (int i = 0; i < n; ++i)
      Spread<Type>(w[(run + i) / Type::kRuns], (run + i) % Type::kRuns, weights[i]);
    Product<0>(x + run);
    if (n > 1) Product<1>(x + run);
    if (n > 2) Product<2>(x + run);
    if (n > 3) Product<3>(x + run);
  }
  // Their sums, from the registers to memory.
  FORETOKEN_INLINE void Save(int n) {
    Unit::template Store<0>(sums[0]);
    if (n > 1) Unit::template Store<1>(sums[1]);
    if (n > 2) Unit::template Store<2>(sums[2]);
    if (n > 3) Unit::template Store<3>(sums[3]);
  }

 private:
  template <int i>
  FORETOKEN_INLINE void Product(const PackedRun<Type>* x) {
    constexpr int a = 4 + i % 2, b = 6 + i % 2;
    Unit::template Zero<i>();
    Unit::template Load<a>(x[i].q[0], kBlock);
    Unit::template Load<b>(weights[i], 64);
    Unit::template Dot<i, a, b>();
  }
};

// The rest: acc of every row, for one run whose integer sums are known.
template <typename Type, int R>
FORETOKEN_INLINE void AddRun(const Scales<Type>& scales, const typename Type::Tile& w, int run,
                             const PackedRun<Type>& x, const std::int32_t (*sums)[16],
                             __m512* acc) {
  const __m512 s = scales.S(w, run);
  __m512 m = s;
  if constexpr (Type::kMinimum) m = scales.M(w, run);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(sums[r]));
    acc[r] = _mm512_fmadd_ps(sum, _mm512_mul_ps(s, _mm512_set1_ps(x.d[r])), acc[r]);
    if constexpr (Type::kMinimum && Type::kRuns == 1)
      acc[r] = _mm512_fmadd_ps(m, _mm512_set1_ps(x.xs[r]), acc[r]);
    if constexpr (Type::kMinimum && Type::kRuns > 1)
      acc[r] = _mm512_fnmadd_ps(m, _mm512_set1_ps(x.xs[r]), acc[r]);
  }
}

template <int kBytes>
FORETOKEN_INLINE void PrefetchAhead(const void* p) {
#pragma GCC unroll 16
  for (int i = 0; i < kBytes; i += 64) {
    _mm_prefetch(static_cast<const char*>(p) + 8192 + i, _MM_HINT_T1);
    _mm_prefetch(static_cast<const char*>(p) + 2048 + i, _MM_HINT_T0);
  }
}

// The unit multiplies one group while the sums of the group before are added up. Its sums are saved
// after that: to wait for them earlier costs a third of the gain.
template <typename Unit, typename Type, int R>
FORETOKEN_INLINE void Strip(const typename Type::Tile* w, const PackedRun<Type>* x, int n_runs,
                            __m512* acc) {
  static_assert(Type::kSums == 1);
  constexpr int kBytes = sizeof(typename Type::Tile) / Type::kRuns;
  Group<Unit, Type> groups[2];
  const auto length = [&](int run) { return n_runs - run < kGroup ? n_runs - run : kGroup; };
  groups[0].Multiply(w, x, 0, length(0));
  groups[0].Save(length(0));
  for (int run = 0, now = 0; run < n_runs; run += kGroup, now ^= 1) {
    const int n = length(run), next = run + kGroup;
    for (int i = 0; i < n; ++i)
      PrefetchAhead<kBytes>(reinterpret_cast<const char*>(w) +
                            static_cast<std::ptrdiff_t>(run + i) * kBytes);
    if (next < n_runs) groups[now ^ 1].Multiply(w, x, next, length(next));
    for (int i = 0; i < n; ++i) {
      const typename Type::Tile& tile = w[(run + i) / Type::kRuns];
      AddRun<Type, R>(Scales<Type>(tile), tile, (run + i) % Type::kRuns, x[run + i],
                      groups[now].sums[i], acc);
    }
    if (next < n_runs) groups[now ^ 1].Save(length(next));
  }
}

// Rows [row, row + R), R <= kRows.
template <typename Unit, typename Type, int R>
__attribute__((noinline)) void Rows(const MatmulArgs& a, int row, int tile_begin, int tile_end) {
  alignas(64) PackedRun<Type> x[kPackRuns];
  const int n_runs = a.k / kBlock;
  const bool packs_once = n_runs <= kPackRuns;
  if (packs_once) Pack<Type>(a, row, R, 0, n_runs, x);
  Unit::Configure(R);
  for (int tile = tile_begin; tile < tile_end; ++tile) {
    const auto* w = static_cast<const typename Type::Tile*>(a.tiles) +
                    std::int64_t{tile} * (n_runs / Type::kRuns);
    __m512 acc[R];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) acc[r] = _mm512_setzero_ps();
    for (int b = 0; b < n_runs; b += kPackRuns) {
      const int n = n_runs - b < kPackRuns ? n_runs - b : kPackRuns;
      if (!packs_once) Pack<Type>(a, row, R, b, n, x);
      Strip<Unit, Type, R>(w + b / Type::kRuns, x, n, acc);
    }
    float* y = a.y + row * a.y_stride + std::int64_t{tile} * tensor::kTileOutputs;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r, y += a.y_stride)
      _mm512_storeu_ps(y, a.accumulate ? _mm512_add_ps(_mm512_loadu_ps(y), acc[r]) : acc[r]);
  }
  Unit::Release();
}

template <typename Unit, typename Type>
struct RowsOf {
  template <int n>
  static void Run(const MatmulArgs& a, int row, int tile_begin, int tile_end) {
    Rows<Unit, Type, n>(a, row, tile_begin, tile_end);
  }
};

template <typename Unit, typename Type>
void Matmul(const MatmulArgs& a) {
  using Of = RowsOf<Unit, Type>;
  static constexpr avx512::RowsFunction kByRows[kRows] = {
      Of::template Run<1>,  Of::template Run<2>,  Of::template Run<3>,  Of::template Run<4>,
      Of::template Run<5>,  Of::template Run<6>,  Of::template Run<7>,  Of::template Run<8>,
      Of::template Run<9>,  Of::template Run<10>, Of::template Run<11>, Of::template Run<12>,
      Of::template Run<13>, Of::template Run<14>, Of::template Run<15>, Of::template Run<16>};
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(typename Type::Tile));
  avx512::ForRowBlocks(a, a.k / kBlock / Type::kRuns * kBytes, kByRows, kRows);
}

}  // namespace
}  // namespace foretoken::kernels::amx
