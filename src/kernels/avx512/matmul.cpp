// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/matmul.cpp: one zmm register holds the 16 outputs of a tile; a row block of R rows
// meets each weight register once. Activations enter as broadcasts from memory, which cost half a
// load and no vector slot.
//
// Quantised: a run of 32 k becomes 8 registers of unsigned bytes, whatever the type; then the rows
// pass by, two at a time, so that two chains of products hide each other's latency. The rows are
// packed before, run by run, so that the inner loop has one pointer and constant offsets:
//   PackedRun = rows [R] of { q [8 words of 4 int8] | d | c }
//   c = -(weight offset) * xs, from which the integer sum starts, or d * xs, which the minimum
//   meets
// A row takes 40 bytes, so that neighbouring rows lie in different banks of the first-level cache.
// Per run and row: 8 vpdpbusd, one conversion, s * xd, one fma, and one fma more for a minimum.
// Q6_K has two c, one for each 16 k (44 bytes), and per row two vpmulld by the scales and one
// addition. (Zen 4, weights streaming from memory: 175-183 multiply-adds per ns and core for 8 to
// 16 rows; its vpdpbusd alone peak at 234, and two fma-class instructions to eight of them leave
// 187.)
#include "kernels/avx512/functions.h"
#include "kernels/avx512/lanes.h"
#include "kernels/avx512/row_blocks.h"
#include "kernels/avx512/weights.h"

namespace foretoken::kernels::avx512 {
namespace {

using tensor::kTileOutputs;

// Asks for memory that the stream of weights reads soon: kFar bytes ahead to the second-level
// cache, kNear bytes ahead to the first. The hardware's own prefetcher stops at the end of each
// page and forgets in the pauses that many rows leave it. Few lines can be on their way to the
// first level at a time, so what is far goes to the second. Up to three rows, which run at the
// memory's speed, do best with shorter distances.
//
// Time of a pass without prefetch / with 4 kB and 512 bytes / with 8 kB and 1 kB, ns per run of a
// tile, 2 threads of a Xeon with AMX (Sapphire Rapids): Q4_0 1 row 25.6 / 17.3 / 18.7, Q4_K 1 row
// 25.3 / 17.4 / 18.1, Q8_0 1 row - / 32.8 / 35.6, 3 rows 45.2 / 33.5 / 34.6, 16 rows - / 52.9 /
// 51.4. Share of plain reading's speed on Zen 4, nothing / 8 kB and 1 kB: Q4_K 4 rows 0.94 / 0.97,
// 6 rows 0.67 / 0.87; nothing / 4 kB and 512 bytes: Q8_0 1 row 0.97 / 1.01.
template <int kFar, int kNear, int kBytes>
FORETOKEN_INLINE void Prefetch(const void* p) {
  const char* at = static_cast<const char*>(p);
#pragma GCC unroll 16
  for (int i = 0; i < kBytes; i += 64) {
    if constexpr (kFar > 0) _mm_prefetch(at + kFar + i, _MM_HINT_T1);
    if constexpr (kNear > 0) _mm_prefetch(at + kNear + i, _MM_HINT_T0);
  }
}

template <int R>
FORETOKEN_INLINE void StoreTile(const MatmulArgs& a, int row, int tile, const __m512* acc) {
  float* y = a.y + row * a.y_stride + std::int64_t{tile} * kTileOutputs;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r, y += a.y_stride)
    _mm512_storeu_ps(y, a.accumulate ? _mm512_add_ps(_mm512_loadu_ps(y), acc[r]) : acc[r]);
}

// ---- Quantised tiles ----------------------------------------------------------------------------

constexpr int kQuantRows =
    16;  // 16 sums, 8 weights, scale, minimum and a pair of rows: 31 registers
constexpr int kPackRuns = 1024;  // k up to 32768 is packed once per row block, on the stack

template <int R, typename Type>
struct PackedRun {
  struct Row {
    std::int32_t q[8];
    float d;
    union {
      std::int32_t c[Type::kSums];
      float xs;
    };
  } rows[R];
};

template <int R, typename Type>
void Pack(const MatmulArgs& a, int row, int run, int n, PackedRun<R, Type>* out) {
  const std::int64_t n_runs = a.k / kBlock;
  for (int r = 0; r < R; ++r) {
    const std::int64_t first = (row + r) * n_runs + run;
    for (int b = 0; b < n; ++b) {
      auto& to = out[b].rows[r];
      const auto* q = reinterpret_cast<const __m256i*>(a.xq + (first + b) * kBlock);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.q), _mm256_loadu_si256(q));
      to.d = a.xd[first + b];
      const std::int32_t* xs = a.xs + 2 * (first + b);
      if constexpr (Type::kMinimum) {
        to.xs = to.d * static_cast<float>(xs[1]);
      } else if constexpr (Type::kSums == 1) {
        to.c[0] = -Type::kOffset * xs[1];
      } else {
        to.c[0] = -Type::kOffset * xs[0];
        to.c[1] = -Type::kOffset * (xs[1] - xs[0]);
      }
    }
  }
}

// c += w (unsigned bytes) . x (signed bytes, one word for all outputs). Spelled out because the
// compiler would not fold the broadcast into the instruction, and a broadcast of its own competes
// for the multiplier's ports.
FORETOKEN_INLINE void Dot(__m512i& c, __m512i w, const std::int32_t& x) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(c) : "v"(w), "m"(x));
}

// isum of kRows rows side by side.
template <typename Type, int kRows, typename Row>
FORETOKEN_INLINE void IntegerSums(const __m512i* q, const Row* row, const __m512i* scale,
                                  __m512i* sum) {
  __m512i part[kRows][Type::kSums];
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 2
    for (int h = 0; h < Type::kSums; ++h)
      part[r][h] = Type::kOffset == 0 ? _mm512_setzero_si512() : _mm512_set1_epi32(row[r].c[h]);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i)
#pragma GCC unroll 2
    for (int r = 0; r < kRows; ++r) Dot(part[r][i * Type::kSums / 8], q[i], row[r].q[i]);
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
    if constexpr (Type::kSums == 1)
      sum[r] = part[r][0];
    else
      sum[r] = _mm512_add_epi32(_mm512_mullo_epi32(part[r][0], scale[0]),
                                _mm512_mullo_epi32(part[r][1], scale[1]));
  }
}

template <typename Type, int kRows, typename Row>
FORETOKEN_INLINE void AddRows(const __m512i* q, const __m512i* scale, __m512 s, __m512 m,
                              const Row* row, __m512* acc) {
  __m512i sum[kRows];
  IntegerSums<Type, kRows>(q, row, scale, sum);
#pragma GCC unroll 2
  for (int r = 0; r < kRows; ++r) {
    acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]), _mm512_mul_ps(s, _mm512_set1_ps(row[r].d)),
                             acc[r]);
    if constexpr (Type::kMinimum && Type::kRuns == 1)
      acc[r] = _mm512_fmadd_ps(m, _mm512_set1_ps(row[r].xs), acc[r]);
    if constexpr (Type::kMinimum && Type::kRuns > 1)
      acc[r] = _mm512_fnmadd_ps(m, _mm512_set1_ps(row[r].xs), acc[r]);
  }
}

template <int R, typename Type>
FORETOKEN_INLINE void AddRun(const typename Type::Tile& w, const Scales<Type>& scales, int run,
                             const PackedRun<R, Type>& x, __m512* acc) {
  __m512i q[8], scale[2] = {};
  Type::Weights(w, run, q);
  if constexpr (Type::kSums == 2)
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h)
      scale[h] =
          _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w.scale[run][h])));
  const __m512 s = scales.S(w, run);
  __m512 m = s;
  if constexpr (Type::kMinimum) m = scales.M(w, run);
#pragma GCC unroll 16
  for (int r = 0; r + 2 <= R; r += 2) AddRows<Type, 2>(q, scale, s, m, x.rows + r, acc + r);
  if constexpr (R % 2 == 1) AddRows<Type, 1>(q, scale, s, m, x.rows + R - 1, acc + R - 1);
}

template <int R, typename Type>
FORETOKEN_INLINE void QuantStrip(const typename Type::Tile* w, const PackedRun<R, Type>* x,
                                 int n_runs, __m512* acc) {
  constexpr int kBytes = sizeof(typename Type::Tile) / Type::kRuns;
  for (; n_runs > 0; n_runs -= Type::kRuns, ++w) {
    const Scales<Type> scales(*w);
    for (int run = 0; run < Type::kRuns; ++run, ++x) {
      const char* at = reinterpret_cast<const char*>(w) + run * kBytes;
      if constexpr (R > 3)
        Prefetch<8192, 1024, kBytes>(at);
      else
        Prefetch<4096, 512, kBytes>(at);
      AddRun<R, Type>(*w, scales, run, *x, acc);
    }
  }
}

template <int R, typename Type>
struct QuantRows {
  static __attribute__((noinline)) void Run(const MatmulArgs& a, int row, int tile_begin,
                                            int tile_end) {
    using Tile = typename Type::Tile;
    alignas(64) PackedRun<R, Type> x[kPackRuns];
    const int n_runs = a.k / kBlock;
    const bool packs_once = n_runs <= kPackRuns;
    if (packs_once) Pack(a, row, 0, n_runs, x);
    for (int tile = tile_begin; tile < tile_end; ++tile) {
      const Tile* w =
          static_cast<const Tile*>(a.tiles) + std::int64_t{tile} * (n_runs / Type::kRuns);
      __m512 acc[R];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r] = _mm512_setzero_ps();
      for (int b = 0; b < n_runs; b += kPackRuns) {
        const int n = n_runs - b < kPackRuns ? n_runs - b : kPackRuns;
        if (!packs_once) Pack(a, row, b, n, x);
        QuantStrip<R, Type>(w + b / Type::kRuns, x, n, acc);
      }
      StoreTile<R>(a, row, tile, acc);
    }
  }
};

// ---- Float tiles --------------------------------------------------------------------------------

constexpr int kFloatRows = 8, kFewFloatRows = 4;

struct F32 {
  using Storage = float;
  static FORETOKEN_INLINE __m512 Load(const float* w) { return _mm512_loadu_ps(w); }
};
struct F16 {
  using Storage = std::uint16_t;
  static FORETOKEN_INLINE __m512 Load(const std::uint16_t* w) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w)));
  }
};
struct BF16 {
  using Storage = std::uint16_t;
  static FORETOKEN_INLINE __m512 Load(const std::uint16_t* w) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(w));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
};

// One k: acc[t][r] += w[t] * x[r].
template <int T, int R, typename Type>
FORETOKEN_INLINE void FloatStep(const typename Type::Storage* w, std::int64_t strip, const float* x,
                                std::int64_t x_stride, __m512 (&acc)[T][R]) {
  __m512 v[T];
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) v[t] = Type::Load(w + t * strip);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    const __m512 xr = _mm512_set1_ps(x[r * x_stride]);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) acc[t][r] = _mm512_fmadd_ps(v[t], xr, acc[t][r]);
  }
}

// T strips side by side, so that few rows still give enough independent chains of fma.
template <int T, int R, typename Type>
FORETOKEN_INLINE void FloatStrips(const MatmulArgs& a, int row, int tile) {
  constexpr int kUnroll = 4;
  const std::int64_t strip = std::int64_t{a.k} * kTileOutputs;
  const auto* w = static_cast<const typename Type::Storage*>(a.tiles) + tile * strip;
  const float* x = a.x + row * a.x_stride;
  __m512 acc[T][R];
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t)
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) acc[t][r] = _mm512_setzero_ps();
  int k = 0;
  for (; k + kUnroll <= a.k; k += kUnroll, x += kUnroll, w += kUnroll * kTileOutputs) {
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t)
      Prefetch<R <= kFewFloatRows ? 0 : 8192, R <= kFewFloatRows ? 4096 : 0,
               kUnroll * kTileOutputs* static_cast<int>(sizeof(*w))>(w + t * strip);
#pragma GCC unroll 4
    for (int i = 0; i < kUnroll; ++i)
      FloatStep<T, R, Type>(w + i * kTileOutputs, strip, x + i, a.x_stride, acc);
  }
  for (; k < a.k; ++k, ++x, w += kTileOutputs) FloatStep<T, R, Type>(w, strip, x, a.x_stride, acc);
#pragma GCC unroll 4
  for (int t = 0; t < T; ++t) StoreTile<R>(a, row, tile + t, acc[t]);
}

template <int R, typename Type>
struct FloatRows {
  static __attribute__((noinline)) void Run(const MatmulArgs& a, int row, int tile_begin,
                                            int tile_end) {
    constexpr int T = R <= 3 ? 2 : 1;
    int tile = tile_begin;
    for (; tile + T <= tile_end; tile += T) FloatStrips<T, R, Type>(a, row, tile);
    for (; tile < tile_end; ++tile) FloatStrips<1, R, Type>(a, row, tile);
  }
};

// ---- All rows -----------------------------------------------------------------------------------

template <typename Type>
void MatmulQuantised(const MatmulArgs& a) {
  static constexpr RowsFunction kByRows[kQuantRows] = {
      QuantRows<1, Type>::Run,  QuantRows<2, Type>::Run,  QuantRows<3, Type>::Run,
      QuantRows<4, Type>::Run,  QuantRows<5, Type>::Run,  QuantRows<6, Type>::Run,
      QuantRows<7, Type>::Run,  QuantRows<8, Type>::Run,  QuantRows<9, Type>::Run,
      QuantRows<10, Type>::Run, QuantRows<11, Type>::Run, QuantRows<12, Type>::Run,
      QuantRows<13, Type>::Run, QuantRows<14, Type>::Run, QuantRows<15, Type>::Run,
      QuantRows<16, Type>::Run};
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(typename Type::Tile));
  ForRowBlocks(a, a.k / kBlock / Type::kRuns * kBytes, kByRows, kQuantRows);
}

template <typename Type>
void MatmulFloat(const MatmulArgs& a) {
  static constexpr RowsFunction kByRows[kFloatRows] = {
      FloatRows<1, Type>::Run, FloatRows<2, Type>::Run, FloatRows<3, Type>::Run,
      FloatRows<4, Type>::Run, FloatRows<5, Type>::Run, FloatRows<6, Type>::Run,
      FloatRows<7, Type>::Run, FloatRows<8, Type>::Run};
  constexpr std::int64_t kStep =
      kTileOutputs * static_cast<std::int64_t>(sizeof(typename Type::Storage));
  ForRowBlocks(a, a.k * kStep, kByRows, kFloatRows);
}

}  // namespace

void MatmulF32(const MatmulArgs& a) {
  MatmulFloat<F32>(a);
}
void MatmulF16(const MatmulArgs& a) {
  MatmulFloat<F16>(a);
}
void MatmulBF16(const MatmulArgs& a) {
  MatmulFloat<BF16>(a);
}
void MatmulQ8_0(const MatmulArgs& a) {
  MatmulQuantised<Q8_0>(a);
}
void MatmulQ4_0(const MatmulArgs& a) {
  MatmulQuantised<Q4_0>(a);
}
void MatmulQ4_1(const MatmulArgs& a) {
  MatmulQuantised<Q4_1>(a);
}
void MatmulQ5_0(const MatmulArgs& a) {
  MatmulQuantised<Q5_0>(a);
}
void MatmulQ5_1(const MatmulArgs& a) {
  MatmulQuantised<Q5_1>(a);
}
void MatmulQ4_K(const MatmulArgs& a) {
  MatmulQuantised<Q4_K>(a);
}
void MatmulQ5_K(const MatmulArgs& a) {
  MatmulQuantised<Q5_K>(a);
}
void MatmulQ6_K(const MatmulArgs& a) {
  MatmulQuantised<Q6_K>(a);
}

}  // namespace foretoken::kernels::avx512
