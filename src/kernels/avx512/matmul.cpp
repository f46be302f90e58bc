// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/matmul.cpp: one zmm register holds the 16 outputs of a tile; a row block of R rows
// meets each weight register once. Activations enter as broadcasts from memory, which cost half a
// load and no vector slot.
//
// Quantised: rows are first packed, block by block, so that the inner loop has one pointer and
// constant offsets:
//   PackedBlock = rows [R] of { q [8 words of 4 int8] | d | c },  c = -(weight offset) * xs
// A row takes 40 bytes, so that neighbouring rows lie in different banks of the first-level cache.
// Per block and row: 8 vpdpbusd that start from c, one conversion, d * xd, one fma. Q6_K has two c,
// one for each 16 k (44 bytes), and per row two vpmulld by the scales and one addition more.
#pragma GCC diagnostic push  // false alarms of g++ 12 inside its own header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "kernels/avx512/functions.h"

namespace foretoken::kernels::avx512 {
namespace {

using tensor::kTileOutputs;
using tensor::TileQ4_0;
using tensor::TileQ6_K;
using tensor::TileQ8_0;

#define FORETOKEN_INLINE inline __attribute__((always_inline))

// Asks for memory that the stream of weights reads soon: the hardware's own prefetcher stops at the
// end of each page. Few rows wait for memory, and want the line in the first-level cache; many are
// busy, and there a line that comes early must not displace the rows. (Measured on Zen 4, Q8_0: 8
// rows 88 cycles a tile instead of 100; 1 row 73 instead of 88.)
template <bool kFewRows, int kBytes>
FORETOKEN_INLINE void PrefetchAhead(const void* p) {
  const char* ahead = static_cast<const char*>(p) + (kFewRows ? 4096 : 8192);
#pragma GCC unroll 16
  for (int i = 0; i < kBytes; i += 64)
    _mm_prefetch(ahead + i, kFewRows ? _MM_HINT_T0 : _MM_HINT_T1);
}

template <int R>
FORETOKEN_INLINE void StoreTile(const MatmulArgs& a, int row, int tile, const __m512* acc) {
  float* y = a.y + row * a.y_stride + std::int64_t{tile} * kTileOutputs;
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r, y += a.y_stride)
    _mm512_storeu_ps(y, a.accumulate ? _mm512_add_ps(_mm512_loadu_ps(y), acc[r]) : acc[r]);
}

// ---- Quantised tiles ----------------------------------------------------------------------------

constexpr int kBlock = tensor::kBlock;
constexpr int kQuantRows = 12;     // 12 integer and 12 float sums, weight, scale: 26 registers
constexpr int kPackBlocks = 1024;  // k up to 32768 is packed once per row block, on the stack

// What a tile type adds to its weights to make them unsigned, how many sums a block has, and how
// many rows are few to PrefetchAhead (measured: Q6_K, 4 rows, 27 ms with 4 and 21 with 2).
template <typename Tile>
struct Traits;
template <>
struct Traits<TileQ8_0> {
  static constexpr std::int32_t kOffset = 128, kSums = 1, kFewRows = 4;
};
template <>
struct Traits<TileQ4_0> {
  static constexpr std::int32_t kOffset = 8, kSums = 1, kFewRows = 4;
};
template <>
struct Traits<TileQ6_K> {
  static constexpr std::int32_t kOffset = 32, kSums = 2, kFewRows = 2;
};

template <int R, typename Tile>
struct PackedBlock {
  struct Row {
    std::int32_t q[8];
    float d;
    std::int32_t c[Traits<Tile>::kSums];
  } rows[R];
};

template <int R, typename Tile>
void Pack(const MatmulArgs& a, int row, int block, int n, PackedBlock<R, Tile>* out) {
  constexpr std::int32_t kOffset = Traits<Tile>::kOffset, kSums = Traits<Tile>::kSums;
  const std::int64_t n_blocks = a.k / kBlock;
  for (int r = 0; r < R; ++r) {
    const std::int64_t first = (row + r) * n_blocks + block;
    for (int b = 0; b < n; ++b) {
      auto& to = out[b].rows[r];
      const auto* q = reinterpret_cast<const __m256i*>(a.xq + (first + b) * kBlock);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.q), _mm256_loadu_si256(q));
      to.d = a.xd[first + b];
      const std::int32_t* xs = a.xs + 2 * (first + b);
      to.c[0] = -kOffset * (kSums == 1 ? xs[1] : xs[0]);
      if constexpr (kSums == 2) to.c[1] = -kOffset * (xs[1] - xs[0]);
    }
  }
}

// c += w (unsigned bytes) . x (signed bytes, one word for all outputs). Spelled out because the
// compiler would not fold the broadcast into the instruction, and a broadcast of its own competes
// for the multiplier's ports.
FORETOKEN_INLINE void Dot(__m512i& c, __m512i w, const std::int32_t& x) {
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(c) : "v"(w), "m"(x));
}

// 64 bytes of weights. Tiles lie on 32 bytes, so every other one crosses the border of a cache line
// with each full load; one row, which only waits for memory, reads halves and gains a tenth.
template <int R>
FORETOKEN_INLINE __m512i LoadWeights(const void* p) {
  if constexpr (R > 1) return _mm512_loadu_si512(p);
  const auto* half = static_cast<const __m256i*>(p);
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(half)),
                            _mm256_loadu_si256(half + 1), 1);
}

template <int R, typename Tile>
FORETOKEN_INLINE void StartSums(const PackedBlock<R, Tile>& x, __m512i* c) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) c[r] = _mm512_set1_epi32(x.rows[r].c[0]);
}

template <int R>
FORETOKEN_INLINE void DotBlock(const TileQ8_0& w, const PackedBlock<R, TileQ8_0>& x, __m512i* c) {
  StartSums(x, c);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const __m512i q = LoadWeights<R>(w.q[i]);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) Dot(c[r], q, x.rows[r].q[i]);
  }
}

template <int R>
FORETOKEN_INLINE void DotBlock(const TileQ4_0& w, const PackedBlock<R, TileQ4_0>& x, __m512i* c) {
  StartSums(x, c);
  const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i q = LoadWeights<R>(w.q[i]);
    const __m512i q0 = _mm512_and_si512(q, low);
    const __m512i q1 = _mm512_and_si512(_mm512_srli_epi16(q, 4), low);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) Dot(c[r], q0, x.rows[r].q[2 * i]);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) Dot(c[r], q1, x.rows[r].q[2 * i + 1]);
  }
}

// 64 bytes in a register: the compiler would load them anew for each use.
FORETOKEN_INLINE __m512i LoadOnce(const void* p) {
  __m512i v = _mm512_loadu_si512(p);
  asm("" : "+v"(v));
  return v;
}

// Four bits of each byte of `low`, and above them two of `high`.
FORETOKEN_INLINE __m512i SixBits(__m512i low, __m512i high) {
  constexpr int kSelect = 0xd8;  // third ? second : first
  const __m512i nibble = _mm512_set1_epi8(15), six = _mm512_set1_epi8(63);
  return _mm512_and_si512(_mm512_ternarylogic_epi64(high, low, nibble, kSelect), six);
}

// All weights of the tile in eight registers, then row by row: so the two sums of a row live only
// briefly.
template <int R>
FORETOKEN_INLINE void DotBlock(const TileQ6_K& w, const PackedBlock<R, TileQ6_K>& x, __m512i* c) {
  __m512i q[8], scale[2];
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m512i high = LoadOnce(w.qh[h]);
    const __m512i low0 = LoadOnce(w.ql[2 * h]), low1 = LoadOnce(w.ql[2 * h + 1]);
    q[4 * h] = SixBits(low0, _mm512_slli_epi16(high, 4));
    q[4 * h + 1] = SixBits(_mm512_srli_epi16(low0, 4), _mm512_slli_epi16(high, 2));
    q[4 * h + 2] = SixBits(low1, high);
    q[4 * h + 3] = SixBits(_mm512_srli_epi16(low1, 4), _mm512_srli_epi16(high, 2));
    scale[h] = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w.scale[h])));
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
    __m512i sum[2];
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      sum[h] = _mm512_set1_epi32(x.rows[r].c[h]);
#pragma GCC unroll 4
      for (int i = 4 * h; i < 4 * h + 4; ++i) Dot(sum[h], q[i], x.rows[r].q[i]);
      sum[h] = _mm512_mullo_epi32(sum[h], scale[h]);
    }
    c[r] = _mm512_add_epi32(sum[0], sum[1]);
  }
}

template <int R, typename Tile>
FORETOKEN_INLINE void QuantStrip(const Tile* w, const PackedBlock<R, Tile>* x, int n, __m512* acc) {
  for (; n > 0; --n, ++w, ++x) {
    PrefetchAhead<R <= Traits<Tile>::kFewRows, sizeof(Tile)>(w);
    __m512i c[R];
    DotBlock<R>(*w, *x, c);
    const __m512 d = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(w->d)));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(x->rows[r].d));
      acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(c[r]), scale, acc[r]);
    }
  }
}

template <int R, typename Tile>
struct QuantRows {
  static __attribute__((noinline)) void Run(const MatmulArgs& a, int row, int tile_begin,
                                            int tile_end) {
    alignas(64) PackedBlock<R, Tile> x[kPackBlocks];
    const int n_blocks = a.k / kBlock;
    const bool packs_once = n_blocks <= kPackBlocks;
    if (packs_once) Pack(a, row, 0, n_blocks, x);
    for (int tile = tile_begin; tile < tile_end; ++tile) {
      const Tile* w = static_cast<const Tile*>(a.tiles) + std::int64_t{tile} * n_blocks;
      __m512 acc[R];
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) acc[r] = _mm512_setzero_ps();
      for (int b = 0; b < n_blocks; b += kPackBlocks) {
        const int n = n_blocks - b < kPackBlocks ? n_blocks - b : kPackBlocks;
        if (!packs_once) Pack(a, row, b, n, x);
        QuantStrip<R>(w + b, x, n, acc);
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
      PrefetchAhead<R <= kFewFloatRows, kUnroll * kTileOutputs * sizeof(*w)>(w + t * strip);
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

// ---- Rows and tiles -----------------------------------------------------------------------------

using RowsFunction = void (*)(const MatmulArgs& a, int row, int tile_begin, int tile_end);

// Cuts the rows into even blocks of at most max_rows. Where there are several, they take turns on a
// group of strips that stays in the second-level cache, so that memory is read once.
void ForRowBlocks(const MatmulArgs& a, std::int64_t strip_bytes, const RowsFunction* by_rows,
                  int max_rows) {
  const int n_row_blocks = (a.n_rows + max_rows - 1) / max_rows;
  int group = a.tile_end - a.tile_begin;
  if (n_row_blocks > 1) {
    const std::int64_t fit = (std::int64_t{512} << 10) / (strip_bytes + 1);
    group = fit < 8 ? 8 : static_cast<int>(fit);
  }
  for (int tile = a.tile_begin; tile < a.tile_end; tile += group) {
    const int tile_end = a.tile_end - tile < group ? a.tile_end : tile + group;
    for (int block = 0; block < n_row_blocks; ++block) {
      const int row = static_cast<int>(std::int64_t{a.n_rows} * block / n_row_blocks);
      const int row_end = static_cast<int>(std::int64_t{a.n_rows} * (block + 1) / n_row_blocks);
      by_rows[row_end - row - 1](a, row, tile, tile_end);
    }
  }
}

template <typename Tile>
void MatmulQuantised(const MatmulArgs& a) {
  static constexpr RowsFunction kByRows[kQuantRows] = {
      QuantRows<1, Tile>::Run,  QuantRows<2, Tile>::Run,  QuantRows<3, Tile>::Run,
      QuantRows<4, Tile>::Run,  QuantRows<5, Tile>::Run,  QuantRows<6, Tile>::Run,
      QuantRows<7, Tile>::Run,  QuantRows<8, Tile>::Run,  QuantRows<9, Tile>::Run,
      QuantRows<10, Tile>::Run, QuantRows<11, Tile>::Run, QuantRows<12, Tile>::Run};
  ForRowBlocks(a, std::int64_t{a.k / kBlock} * static_cast<std::int64_t>(sizeof(Tile)), kByRows,
               kQuantRows);
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
  MatmulQuantised<TileQ8_0>(a);
}
void MatmulQ4_0(const MatmulArgs& a) {
  MatmulQuantised<TileQ4_0>(a);
}
void MatmulQ6_K(const MatmulArgs& a) {
  MatmulQuantised<TileQ6_K>(a);
}

}  // namespace foretoken::kernels::avx512
