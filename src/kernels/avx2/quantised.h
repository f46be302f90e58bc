// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/quantised.h: products of rows and quantised tiles with 256-bit registers, all but
// the integer sums themselves: those are the caller's, who knows the best instruction for them
//
//   struct Product {
//     // At most kMaxRows: how many rows its registers hold.
//     template <typename Type>
//     static constexpr int kRows;
//     // sum[r] = isum of outputs [8 h, 8 h + 8) over one run, r = 0 .. R - 1.
//     template <int R, typename Type>
//     static void Sums(const typename Type::Tile& tile, int run, int h, const PackedRow* rows,
//                      __m256i* sum);
//   };
//
// Rows are packed before, run by run, so that the inner loop has one pointer and constant offsets.
// A tile is taken half by half (8 outputs), so that the integer sums of 8 rows fit the registers.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/avx2/strips.h"

namespace foretoken::kernels::avx2 {
namespace {

using tensor::kBlock;

constexpr int kMaxRows = 8;
constexpr int kPackRuns = 1024;  // k up to 32768 is packed once per row block, on the stack

FORETOKEN_INLINE __m256i Load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
FORETOKEN_INLINE __m128i LoadEight(const void* p) {
  return _mm_loadl_epi64(static_cast<const __m128i*>(p));
}
FORETOKEN_INLINE __m256 LoadHalves(const std::uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
FORETOKEN_INLINE __m256 LoadBytes(const std::uint8_t* p) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(LoadEight(p)));
}

// ---- Weights ------------------------------------------------------------------------------------

// Unsigned weights of 8 outputs: 4 k of the even word, and the next 4 of the odd one.
struct Words {
  __m256i even, odd;
};

FORETOKEN_INLINE Words Nibbles(const std::uint8_t (*q)[4]) {
  const __m256i both = Load(q), low = _mm256_set1_epi8(15);
  return {_mm256_and_si256(both, low), _mm256_and_si256(_mm256_srli_epi16(both, 4), low)};
}

// `bits` of each byte of `high`, moved left (right where by < 0), above the four bits of `low`.
template <int kBits>
FORETOKEN_INLINE __m256i WithHigh(__m256i low, __m256i high, int by) {
  const __m256i moved = by < 0 ? _mm256_srli_epi16(high, -by) : _mm256_slli_epi16(high, by);
  return _mm256_or_si256(low, _mm256_and_si256(moved, _mm256_set1_epi8(kBits)));
}

FORETOKEN_INLINE Words FiveBits(const std::uint8_t (*q)[4], const std::uint8_t (*qh)[4], int i) {
  const Words low = Nibbles(q);
  const __m256i high = Load(qh);
  return {WithHigh<0x10>(low.even, high, 4 - 2 * i), WithHigh<0x10>(low.odd, high, 3 - 2 * i)};
}

// Per tile type: bits of a weight; runs of 32 k in a tile; what was added to its weights; whether
// it has minima.
template <int kBitsOf, int kRunsOf, int kOffsetOf, bool kMinimumOf>
struct Traits {
  static constexpr int kBits = kBitsOf, kRuns = kRunsOf, kOffset = kOffsetOf;
  static constexpr bool kMinimum = kMinimumOf;
};

// And of each: words 2 i and 2 i + 1 of a run, of outputs [8 h, 8 h + 8).
struct Q8_0 : Traits<8, 1, 128, false> {
  using Tile = tensor::TileQ8_0;
  static FORETOKEN_INLINE Words Pair(const Tile& t, int, int h, int i) {
    return {Load(t.q[2 * i][8 * h]), Load(t.q[2 * i + 1][8 * h])};
  }
};
struct Q4_0 : Traits<4, 1, 8, false> {
  using Tile = tensor::TileQ4_0;
  static FORETOKEN_INLINE Words Pair(const Tile& t, int, int h, int i) {
    return Nibbles(t.q[i] + 8 * h);
  }
};
struct Q4_1 : Traits<4, 1, 0, true> {
  using Tile = tensor::TileQ4_1;
  static FORETOKEN_INLINE Words Pair(const Tile& t, int, int h, int i) {
    return Nibbles(t.q[i] + 8 * h);
  }
};
struct Q5_0 : Traits<5, 1, 16, false> {
  using Tile = tensor::TileQ5_0;
  static FORETOKEN_INLINE Words Pair(const Tile& t, int, int h, int i) {
    return FiveBits(t.q[i] + 8 * h, t.qh + 8 * h, i);
  }
};
struct Q5_1 : Traits<5, 1, 0, true> {
  using Tile = tensor::TileQ5_1;
  static FORETOKEN_INLINE Words Pair(const Tile& t, int, int h, int i) {
    return FiveBits(t.q[i] + 8 * h, t.qh + 8 * h, i);
  }
};
struct Q4_K : Traits<4, 8, 0, true> {
  using Tile = tensor::TileQ4_K;
  static FORETOKEN_INLINE Words Pair(const Tile& t, int run, int h, int i) {
    return Nibbles(t.runs[run].q[i] + 8 * h);
  }
};
struct Q5_K : Traits<5, 8, 0, true> {
  using Tile = tensor::TileQ5_K;
  static FORETOKEN_INLINE Words Pair(const Tile& t, int run, int h, int i) {
    return FiveBits(t.runs[run].q[i] + 8 * h, t.runs[run].qh + 8 * h, i);
  }
};
struct Q6_K : Traits<6, 8, 32, false> {
  using Tile = tensor::TileQ6_K;
  static FORETOKEN_INLINE Words Pair(const Tile& t, int run, int h, int i) {
    const Words low = Nibbles(t.runs[run].q[i] + 8 * h);
    const __m256i high = Load(t.runs[run].qh[i / 2] + 8 * h);
    const int first = i % 2 * 4;
    return {WithHigh<0x30>(low.even, high, 4 - first), WithHigh<0x30>(low.odd, high, 2 - first)};
  }
};

// s and m of a run's outputs [8 h, 8 h + 8); where the file subtracts its minima, m is the negative
// of the contract's.
template <typename Type>
FORETOKEN_INLINE __m256 Scale(const typename Type::Tile& t, int run, int h) {
  const __m256 d = LoadHalves(t.d + 8 * h);
  if constexpr (Type::kMinimum && Type::kRuns > 1)
    return _mm256_mul_ps(d, LoadBytes(t.scale[run] + 8 * h));
  else
    return d;
}
template <typename Type>
FORETOKEN_INLINE __m256 Minimum(const typename Type::Tile& t, int run, int h) {
  if constexpr (Type::kRuns > 1)
    return _mm256_mul_ps(LoadHalves(t.dmin + 8 * h), LoadBytes(t.minimum[run] + 8 * h));
  else
    return LoadHalves(t.m + 8 * h);
}

// Scales of Q6_K as 16-bit pairs: of both halves of a run, or twice that of one.
FORETOKEN_INLINE __m256i PairScales(const std::int8_t* first, const std::int8_t* second) {
  return _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(LoadEight(first), LoadEight(second)));
}

// ---- Rows ---------------------------------------------------------------------------------------

// One row's run. 40 bytes, so that neighbouring rows lie in different banks of the first-level
// cache.
struct PackedRow {
  std::int32_t q[8];  // 32 int8
  float d;
  union {
    std::int32_t c;  // -offset * xs; of Q6_K -xs of both halves, 16 bits each, the first one low
    float xs;        // d * xs, which the minimum meets
  };
};

template <typename Type>
FORETOKEN_INLINE void PackSum(const std::int32_t* xs, PackedRow& to) {
  if constexpr (Type::kMinimum)
    to.xs = to.d * static_cast<float>(xs[1]);
  else if constexpr (Type::kBits == 6)
    to.c = (-xs[0] & 0xffff) | (xs[0] - xs[1]) * 65536;
  else
    to.c = -Type::kOffset * xs[1];
}

// Runs [run, run + n) of R rows: out[n][R].
template <int R, typename Type>
void Pack(const MatmulArgs& a, int row, int run, int n, PackedRow* out) {
  const std::int64_t n_runs = a.k / kBlock;
  for (int r = 0; r < R; ++r) {
    const std::int64_t first = (row + r) * n_runs + run;
    for (int b = 0; b < n; ++b) {
      PackedRow& to = out[b * R + r];
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.q), Load(a.xq + (first + b) * kBlock));
      to.d = a.xd[first + b];
      PackSum<Type>(a.xs + 2 * (first + b), to);
    }
  }
}

// What each row's integer sum starts from: the weights' offset taken back.
template <int R, typename Type>
FORETOKEN_INLINE void StartSums(const typename Type::Tile& t, int run, int h, const PackedRow* rows,
                                __m256i* sum) {
  if constexpr (Type::kBits == 6) {
    const __m256i both = PairScales(t.scale[run][0] + 8 * h, t.scale[run][1] + 8 * h);
    const __m256i scale = _mm256_slli_epi16(both, 5);  // times the offset: below 2^13
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[r] = _mm256_madd_epi16(scale, _mm256_set1_epi32(rows[r].c));
  } else {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
      sum[r] = Type::kOffset == 0 ? _mm256_setzero_si256() : _mm256_set1_epi32(rows[r].c);
  }
}

// ---- Strips -------------------------------------------------------------------------------------

template <int R, typename Type, typename Product>
FORETOKEN_INLINE void AddRun(const typename Type::Tile& w, int run, const PackedRow* rows,
                             __m256 (&acc)[R][2]) {
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    // Each half broadcasts the activations of several rows anew: kept, they would only be spilled.
    if constexpr (R > 1) asm volatile("" : "+r"(rows));
    __m256i sum[R];
    Product::template Sums<R, Type>(w, run, h, rows, sum);
    const __m256 s = Scale<Type>(w, run, h);
    __m256 m = s;
    if constexpr (Type::kMinimum) m = Minimum<Type>(w, run, h);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      acc[r][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[r]),
                                  _mm256_mul_ps(s, _mm256_set1_ps(rows[r].d)), acc[r][h]);
      if constexpr (Type::kMinimum && Type::kRuns == 1)
        acc[r][h] = _mm256_fmadd_ps(m, _mm256_set1_ps(rows[r].xs), acc[r][h]);
      if constexpr (Type::kMinimum && Type::kRuns > 1)
        acc[r][h] = _mm256_fnmadd_ps(m, _mm256_set1_ps(rows[r].xs), acc[r][h]);
    }
  }
}

template <int R, typename Type, typename Product>
FORETOKEN_INLINE void QuantStrip(const typename Type::Tile* w, const PackedRow* rows, int n_runs,
                                 __m256 (&acc)[R][2]) {
  constexpr int kBytes = sizeof(typename Type::Tile) / Type::kRuns;
  for (; n_runs > 0; n_runs -= Type::kRuns, ++w) {
    for (int run = 0; run < Type::kRuns; ++run, rows += R) {
      PrefetchAhead<R, kBytes>(reinterpret_cast<const char*>(w) + run * kBytes);
      AddRun<R, Type, Product>(*w, run, rows, acc);
    }
  }
}

template <int R, typename Type, typename Product>
struct QuantRows {
  static __attribute__((noinline)) void Run(const MatmulArgs& a, int row, int tile_begin,
                                            int tile_end) {
    using Tile = typename Type::Tile;
    alignas(64) PackedRow rows[kPackRuns * R];
    const int n_runs = a.k / kBlock;
    const bool packs_once = n_runs <= kPackRuns;
    if (packs_once) Pack<R, Type>(a, row, 0, n_runs, rows);
    for (int tile = tile_begin; tile < tile_end; ++tile) {
      const Tile* w =
          static_cast<const Tile*>(a.tiles) + std::int64_t{tile} * (n_runs / Type::kRuns);
      __m256 acc[R][2];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
      for (int b = 0; b < n_runs; b += kPackRuns) {
        const int n = n_runs - b < kPackRuns ? n_runs - b : kPackRuns;
        if (!packs_once) Pack<R, Type>(a, row, b, n, rows);
        QuantStrip<R, Type, Product>(w + b / Type::kRuns, rows, n, acc);
      }
      StoreTile<R>(a, row, tile, acc);
    }
  }
};

template <int R, typename Type, typename Product>
constexpr RowsFunction RowsFunctionOf() {
  if constexpr (R <= Product::template kRows<Type>)
    return QuantRows<R, Type, Product>::Run;
  else
    return nullptr;
}

template <typename Type, typename Product>
void MatmulQuantised(const MatmulArgs& a) {
  static constexpr RowsFunction kByRows[kMaxRows] = {
      RowsFunctionOf<1, Type, Product>(), RowsFunctionOf<2, Type, Product>(),
      RowsFunctionOf<3, Type, Product>(), RowsFunctionOf<4, Type, Product>(),
      RowsFunctionOf<5, Type, Product>(), RowsFunctionOf<6, Type, Product>(),
      RowsFunctionOf<7, Type, Product>(), RowsFunctionOf<8, Type, Product>()};
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(typename Type::Tile));
  ForRowBlocks(a, a.k / kBlock / Type::kRuns * kBytes, kByRows, Product::template kRows<Type>);
}

}  // namespace
}  // namespace foretoken::kernels::avx2
