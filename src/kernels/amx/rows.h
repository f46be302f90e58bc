// SPDX-License-Identifier: Apache-2.0
// kernels/amx/rows.h: quantised products by a unit of tile registers: the processor's, or an
// emulated one that lets any machine with AVX-512 test this code.
//
// A register holds 16 rows of 64 bytes. Per part of a run (32 k; 16 k for Q6_K, which has two
// scales):
//   A  [R rows][part k]               signed activations
//   B  [part k / 4][16 outputs][4]    unsigned weights: a tile of tensor/block_layout.h as it lies,
//                                     or after its bits were spread
//   C  [R rows][16 outputs] int32     = A . B, exact, so it does not matter who computes it
// Four parts are under way at a time, in C 0 to 3. What follows, C less the offset, conversion and
// fma, is that of AVX-512, in the same order: the same bits.
//
// Unit: static Configure(rows, part_k), Release(), Load<register>(p, stride), Zero<register>(),
//       Dot<c, a, b>() and Store<register>(p), registers 0-3: C, 4-5: A, 6-7: B.
#pragma once

#include "kernels/avx512/row_blocks.h"
#include "kernels/avx512/weights.h"

namespace foretoken::kernels::amx {
namespace {

using avx512::kBlock;
using avx512::Scales;

constexpr int kRows = 16;
constexpr int kParts = 4;
constexpr int kPackRuns = 1024;

// A run of the rows: what the unit reads, and what follows it.
template <typename Type>
struct PackedRun {
  std::int8_t q[Type::kSums][kRows][kBlock / Type::kSums];
  float d[kRows];
  union {
    std::int32_t c[Type::kSums][kRows];
    float xs[kRows];
  };
};

template <typename Type>
void Pack(const MatmulArgs& a, int row, int n_rows, int run, int n, PackedRun<Type>* out) {
  constexpr int kPart = kBlock / Type::kSums;
  const std::int64_t n_runs = a.k / kBlock;
  for (int r = 0; r < n_rows; ++r) {
    const std::int64_t first = (row + r) * n_runs + run;
    for (int b = 0; b < n; ++b) {
      PackedRun<Type>& to = out[b];
      for (int h = 0; h < Type::kSums; ++h)
        __builtin_memcpy(to.q[h][r], a.xq + (first + b) * kBlock + h * kPart, kPart);
      to.d[r] = a.xd[first + b];
      const std::int32_t* xs = a.xs + 2 * (first + b);
      if constexpr (Type::kMinimum) {
        to.xs[r] = to.d[r] * static_cast<float>(xs[1]);
      } else if constexpr (Type::kSums == 1) {
        to.c[0][r] = -Type::kOffset * xs[1];
      } else {
        to.c[0][r] = -Type::kOffset * xs[0];
        to.c[1][r] = -Type::kOffset * (xs[1] - xs[0]);
      }
    }
  }
}

// Where a part of the weights lies for the unit: in place, or spread into `buffer`.
template <typename Type>
FORETOKEN_INLINE void Spread(const typename Type::Tile& w, int run, std::uint8_t* buffer) {
  __m512i q[8];
  Type::Weights(w, run, q);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) _mm512_store_si512(buffer + 64 * i, q[i]);
}
template <>
FORETOKEN_INLINE void Spread<avx512::Q8_0>(const tensor::TileQ8_0&, int, std::uint8_t*) {}

template <typename Type>
FORETOKEN_INLINE const std::uint8_t* WeightsAt(const typename Type::Tile&,
                                               const std::uint8_t* buffer) {
  return buffer;
}
template <>
FORETOKEN_INLINE const std::uint8_t* WeightsAt<avx512::Q8_0>(const tensor::TileQ8_0& w,
                                                             const std::uint8_t*) {
  return &w.q[0][0][0];
}

// Integer sums of part `part` of a group to sums: [rows][16].
template <typename Unit, typename Type, int part>
FORETOKEN_INLINE void Multiply(const PackedRun<Type>& x, int half, const std::uint8_t* weights) {
  constexpr int kPart = kBlock / Type::kSums, a = 4 + part % 2, b = 6 + part % 2;
  Unit::template Zero<part>();
  Unit::template Load<a>(x.q[half][0], kPart);
  Unit::template Load<b>(weights + half * (kPart / 4) * 64, 64);
  Unit::template Dot<part, a, b>();
}

// The tile units' part of one group of kParts / kSums runs.
template <typename Unit, typename Type>
struct Group {
  static constexpr int kRuns = kParts / Type::kSums;

  alignas(64) std::uint8_t spread[kRuns][512];
  alignas(64) std::int32_t sums[kParts][kRows][16];

  // Runs [run, run + n) of the strip, n <= kRuns.
  FORETOKEN_INLINE void Multiply(const typename Type::Tile* w, const PackedRun<Type>* x, int run,
                                 int n) {
    for (int i = 0; i < n; ++i)
      Spread<Type>(w[(run + i) / Type::kRuns], (run + i) % Type::kRuns, spread[i]);
    const auto part = [&](auto number) {
      constexpr int p = number.value, i = p / Type::kSums;
      if (i >= n) return;
      amx::Multiply<Unit, Type, p>(x[run + i], p % Type::kSums,
                                   WeightsAt<Type>(w[(run + i) / Type::kRuns], spread[i]));
    };
    part(Number<0>()), part(Number<1>()), part(Number<2>()), part(Number<3>());
    const int n_parts = n * Type::kSums;
    Unit::template Store<0>(sums[0]);
    if (n_parts > 1) Unit::template Store<1>(sums[1]);
    if (n_parts > 2) Unit::template Store<2>(sums[2]);
    if (n_parts > 3) Unit::template Store<3>(sums[3]);
  }

 private:
  template <int n>
  struct Number {
    static constexpr int value = n;
  };
};

// The rest: acc of every row, for one run whose integer sums are known.
template <typename Type>
FORETOKEN_INLINE void AddRun(const Scales<Type>& scales, const typename Type::Tile& w, int run,
                             const PackedRun<Type>& x, int n_rows,
                             const std::int32_t (*sums)[kRows][16], __m512* acc) {
  const __m512 s = scales.S(w, run);
  __m512 m = s;
  if constexpr (Type::kMinimum) m = scales.M(w, run);
  __m512i scale[2] = {};
  if constexpr (Type::kSums == 2)
    for (int h = 0; h < 2; ++h)
      scale[h] =
          _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w.scale[run][h])));
  for (int r = 0; r < n_rows; ++r) {
    __m512i sum = _mm512_load_si512(sums[0][r]);
    if constexpr (Type::kOffset != 0) sum = _mm512_add_epi32(sum, _mm512_set1_epi32(x.c[0][r]));
    if constexpr (Type::kSums == 2) {
      const __m512i second =
          _mm512_add_epi32(_mm512_load_si512(sums[1][r]), _mm512_set1_epi32(x.c[1][r]));
      sum =
          _mm512_add_epi32(_mm512_mullo_epi32(sum, scale[0]), _mm512_mullo_epi32(second, scale[1]));
    }
    acc[r] =
        _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(s, _mm512_set1_ps(x.d[r])), acc[r]);
    if constexpr (Type::kMinimum && Type::kRuns == 1)
      acc[r] = _mm512_fmadd_ps(m, _mm512_set1_ps(x.xs[r]), acc[r]);
    if constexpr (Type::kMinimum && Type::kRuns > 1)
      acc[r] = _mm512_fnmadd_ps(m, _mm512_set1_ps(x.xs[r]), acc[r]);
  }
}

template <int kBytes>
FORETOKEN_INLINE void PrefetchAhead(const void* p) {
#pragma GCC unroll 16
  for (int i = 0; i < kBytes; i += 64)
    _mm_prefetch(static_cast<const char*>(p) + 8192 + i, _MM_HINT_T1);
}

template <typename Unit, typename Type>
FORETOKEN_INLINE void Strip(const typename Type::Tile* w, const PackedRun<Type>* x, int n_runs,
                            int n_rows, __m512* acc) {
  using Runs = Group<Unit, Type>;
  constexpr int kBytes = sizeof(typename Type::Tile) / Type::kRuns;
  Runs group;
  for (int run = 0; run < n_runs; run += Runs::kRuns) {
    const int n = n_runs - run < Runs::kRuns ? n_runs - run : Runs::kRuns;
    for (int i = 0; i < n; ++i)
      PrefetchAhead<kBytes>(reinterpret_cast<const char*>(w) +
                            static_cast<std::ptrdiff_t>(run + i) * kBytes);
    group.Multiply(w, x, run, n);
    for (int i = 0; i < n; ++i) {
      const typename Type::Tile& tile = w[(run + i) / Type::kRuns];
      AddRun<Type>(Scales<Type>(tile), tile, (run + i) % Type::kRuns, x[run + i], n_rows,
                   group.sums + i * Type::kSums, acc);
    }
  }
}

// Rows [row, row + n_rows), n_rows <= kRows.
template <typename Unit, typename Type>
__attribute__((noinline)) void Rows(const MatmulArgs& a, int row, int n_rows, int tile_begin,
                                    int tile_end) {
  alignas(64) PackedRun<Type> x[kPackRuns];
  const int n_runs = a.k / kBlock;
  const bool packs_once = n_runs <= kPackRuns;
  if (packs_once) Pack<Type>(a, row, n_rows, 0, n_runs, x);
  Unit::Configure(n_rows, kBlock / Type::kSums);
  for (int tile = tile_begin; tile < tile_end; ++tile) {
    const auto* w = static_cast<const typename Type::Tile*>(a.tiles) +
                    std::int64_t{tile} * (n_runs / Type::kRuns);
    alignas(64) __m512 acc[kRows];
    for (int r = 0; r < n_rows; ++r) acc[r] = _mm512_setzero_ps();
    for (int b = 0; b < n_runs; b += kPackRuns) {
      const int n = n_runs - b < kPackRuns ? n_runs - b : kPackRuns;
      if (!packs_once) Pack<Type>(a, row, n_rows, b, n, x);
      Strip<Unit, Type>(w + b / Type::kRuns, x, n, n_rows, acc);
    }
    float* y = a.y + row * a.y_stride + std::int64_t{tile} * tensor::kTileOutputs;
    for (int r = 0; r < n_rows; ++r, y += a.y_stride)
      _mm512_storeu_ps(y, a.accumulate ? _mm512_add_ps(_mm512_loadu_ps(y), acc[r]) : acc[r]);
  }
  Unit::Release();
}

template <typename Unit, typename Type>
struct RowsOf {
  template <int n>
  static void Run(const MatmulArgs& a, int row, int tile_begin, int tile_end) {
    Rows<Unit, Type>(a, row, n, tile_begin, tile_end);
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
