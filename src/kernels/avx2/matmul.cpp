// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/matmul.cpp: two ymm registers hold the 16 outputs of a tile; a row block of R rows
// meets each weight register once.
//
// Integer products without VNNI, all exact:
//   Q8_0  vpmaddubsw(|w|, x with the sign of w): w = q - 128 lies in [-128, 127], |x| <= 127, so a
//   pair is at most
//         2 * 128 * 127 = 32512 and never saturates; vpmaddwd with ones widens each pair sum.
//   Q4_0  vpmaddubsw(nibble, x); the 8 groups of a block add up to at most 8 * 2 * 15 * 127 = 30480
//   in 16 bits, so one
//         vpmaddwd per block suffices; the sum starts from -8 * xs.
//   Q6_K  vpmaddubsw(q, x); two of 4 k add up to at most 2 * 2 * 63 * 127 = 32004 in 16 bits, and
//   one
//         vpmaddwd by the scale widens, scales and sums; then minus 32 * (scale0 * xs0 + scale1 *
//         xs1), the bracket being one vpmaddwd of 16-bit pairs.
#include <immintrin.h>

#include "kernels/avx2/functions.h"

namespace foretoken::kernels::avx2 {
namespace {

using tensor::kBlock;
using tensor::kTileOutputs;
using tensor::TileQ4_0;
using tensor::TileQ6_K;
using tensor::TileQ8_0;

#define FORETOKEN_INLINE inline __attribute__((always_inline))

// Asks for memory that the stream of weights reads soon: the hardware's own prefetcher stops at the
// end of each page. Few rows wait for memory, and want the line in the first-level cache; many are
// busy, and there a line that comes early must not displace the rows.
template <int R, int kBytes>
FORETOKEN_INLINE void PrefetchAhead(const void* p) {
  constexpr bool kFewRows = R <= 2;
  const char* ahead = static_cast<const char*>(p) + (kFewRows ? 4096 : 8192);
#pragma GCC unroll 16
  for (int i = 0; i < kBytes; i += 64)
    _mm_prefetch(ahead + i, kFewRows ? _MM_HINT_T0 : _MM_HINT_T1);
}

template <int R>
FORETOKEN_INLINE void StoreTile(const MatmulArgs& a, int row, int tile, const __m256 (&acc)[R][2]) {
  float* y = a.y + row * a.y_stride + std::int64_t{tile} * kTileOutputs;
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r, y += a.y_stride) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m256 v = acc[r][h];
      _mm256_storeu_ps(y + 8 * h, a.accumulate ? _mm256_add_ps(_mm256_loadu_ps(y + 8 * h), v) : v);
    }
  }
}

// ---- Quantised tiles ----------------------------------------------------------------------------

constexpr int kQuantRows = 4;
constexpr int kPackBlocks = 1024;  // k up to 32768 is packed once per row block, on the stack

template <int R>
struct PackedBlock {
  struct Row {
    std::int32_t q[8];  // 32 int8
    float d;
    std::int32_t s;  // sum of q; for Q6_K those of both halves, 16 bits each, the first one low
  } rows[R];
};

template <typename Tile>
FORETOKEN_INLINE std::int32_t PackedSum(const std::int32_t* xs) {
  return xs[1];
}
template <>
FORETOKEN_INLINE std::int32_t PackedSum<TileQ6_K>(const std::int32_t* xs) {
  return (xs[0] & 0xffff) | (xs[1] - xs[0]) * 65536;
}

template <int R, typename Tile>
void Pack(const MatmulArgs& a, int row, int block, int n, PackedBlock<R>* out) {
  const std::int64_t n_blocks = a.k / kBlock;
  for (int r = 0; r < R; ++r) {
    const std::int64_t first = (row + r) * n_blocks + block;
    for (int b = 0; b < n; ++b) {
      auto& to = out[b].rows[r];
      const auto* q = reinterpret_cast<const __m256i*>(a.xq + (first + b) * kBlock);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to.q), _mm256_loadu_si256(q));
      to.d = a.xd[first + b];
      to.s = PackedSum<Tile>(a.xs + 2 * (first + b));
    }
  }
}

FORETOKEN_INLINE __m256i Load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

template <int R>
FORETOKEN_INLINE void DotBlock(const TileQ8_0& w, const PackedBlock<R>& x, __m256i (&c)[R][2]) {
  const __m256i top = _mm256_set1_epi8(-128), ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) c[r][0] = c[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    const __m256i w0 = _mm256_xor_si256(Load(w.q[i][0]), top),
                  w1 = _mm256_xor_si256(Load(w.q[i][8]), top);
    const __m256i a0 = _mm256_abs_epi8(w0), a1 = _mm256_abs_epi8(w1);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i v = _mm256_set1_epi32(x.rows[r].q[i]);
      const __m256i p0 = _mm256_maddubs_epi16(a0, _mm256_sign_epi8(v, w0));
      const __m256i p1 = _mm256_maddubs_epi16(a1, _mm256_sign_epi8(v, w1));
      c[r][0] = _mm256_add_epi32(c[r][0], _mm256_madd_epi16(p0, ones));
      c[r][1] = _mm256_add_epi32(c[r][1], _mm256_madd_epi16(p1, ones));
    }
  }
}

template <int R>
FORETOKEN_INLINE void DotBlock(const TileQ4_0& w, const PackedBlock<R>& x, __m256i (&c)[R][2]) {
  const __m256i low = _mm256_set1_epi8(15);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) c[r][0] = c[r][1] = _mm256_setzero_si256();
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m256i q = Load(w.q[i][8 * h]);
      const __m256i q0 = _mm256_and_si256(q, low),
                    q1 = _mm256_and_si256(_mm256_srli_epi16(q, 4), low);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i p0 = _mm256_maddubs_epi16(q0, _mm256_set1_epi32(x.rows[r].q[2 * i]));
        const __m256i p1 = _mm256_maddubs_epi16(q1, _mm256_set1_epi32(x.rows[r].q[2 * i + 1]));
        c[r][h] = _mm256_add_epi16(c[r][h], _mm256_add_epi16(p0, p1));
      }
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const __m256i offset = _mm256_slli_epi32(_mm256_set1_epi32(x.rows[r].s), 3);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h)
      c[r][h] = _mm256_sub_epi32(_mm256_madd_epi16(c[r][h], _mm256_set1_epi16(1)), offset);
  }
}

// Bits 2 f and 2 f + 1 of each byte, moved to bits 4 and 5.
template <int f>
FORETOKEN_INLINE __m256i HighBits(__m256i q) {
  if constexpr (f < 2) q = _mm256_slli_epi16(q, 4 - 2 * f);
  if constexpr (f == 3) q = _mm256_srli_epi16(q, 2);
  return _mm256_and_si256(q, _mm256_set1_epi8(0x30));
}

// Adds scale * (q of 8 k . x): words i and i + 1 of the activations, fields f and f + 1 of the high
// bits.
template <int R, int i>
FORETOKEN_INLINE void DotQ6_K(__m256i low, __m256i high, __m256i scale, const PackedBlock<R>& x,
                              __m256i (&c)[R][2], int h) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i q0 = _mm256_or_si256(_mm256_and_si256(low, nibble), HighBits<i % 4>(high));
  const __m256i q1 = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(low, 4), nibble),
                                     HighBits<i % 4 + 1>(high));
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r) {
    const __m256i p0 = _mm256_maddubs_epi16(q0, _mm256_set1_epi32(x.rows[r].q[i]));
    const __m256i p1 = _mm256_maddubs_epi16(q1, _mm256_set1_epi32(x.rows[r].q[i + 1]));
    c[r][h] = _mm256_add_epi32(c[r][h], _mm256_madd_epi16(_mm256_add_epi16(p0, p1), scale));
  }
}

template <int R>
FORETOKEN_INLINE void DotBlock(const TileQ6_K& w, const PackedBlock<R>& x, __m256i (&c)[R][2]) {
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const auto scales = [&](int half) {
      return _mm256_cvtepi8_epi32(
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(w.scale[half] + 8 * h)));
    };
    const __m256i s0 = scales(0), s1 = scales(1);
    const __m256i top0 = _mm256_slli_epi32(s0, 16), top1 = _mm256_slli_epi32(s1, 16);
    const __m256i both = _mm256_blend_epi16(s0, top1, 0xaa);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i sum = _mm256_madd_epi16(both, _mm256_set1_epi32(x.rows[r].s));
      c[r][h] = _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(sum, 5));
    }
    const __m256i pair0 = _mm256_blend_epi16(s0, top0, 0xaa),
                  pair1 = _mm256_blend_epi16(s1, top1, 0xaa);
    const __m256i high0 = Load(w.qh[0][8 * h]), high1 = Load(w.qh[1][8 * h]);
    DotQ6_K<R, 0>(Load(w.ql[0][8 * h]), high0, pair0, x, c, h);
    DotQ6_K<R, 2>(Load(w.ql[1][8 * h]), high0, pair0, x, c, h);
    DotQ6_K<R, 4>(Load(w.ql[2][8 * h]), high1, pair1, x, c, h);
    DotQ6_K<R, 6>(Load(w.ql[3][8 * h]), high1, pair1, x, c, h);
  }
}

template <int R, typename Tile>
FORETOKEN_INLINE void QuantStrip(const Tile* w, const PackedBlock<R>* x, int n,
                                 __m256 (&acc)[R][2]) {
  for (; n > 0; --n, ++w, ++x) {
    PrefetchAhead<R, sizeof(Tile)>(w);
    __m256i c[R][2];
    DotBlock<R>(*w, *x, c);
    const auto* d = reinterpret_cast<const __m128i*>(w->d);
    const __m256 d0 = _mm256_cvtph_ps(_mm_loadu_si128(d)),
                 d1 = _mm256_cvtph_ps(_mm_loadu_si128(d + 1));
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 xd = _mm256_set1_ps(x->rows[r].d);
      acc[r][0] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(c[r][0]), _mm256_mul_ps(d0, xd), acc[r][0]);
      acc[r][1] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(c[r][1]), _mm256_mul_ps(d1, xd), acc[r][1]);
    }
  }
}

template <int R, typename Tile>
struct QuantRows {
  static __attribute__((noinline)) void Run(const MatmulArgs& a, int row, int tile_begin,
                                            int tile_end) {
    alignas(64) PackedBlock<R> x[kPackBlocks];
    const int n_blocks = a.k / kBlock;
    const bool packs_once = n_blocks <= kPackBlocks;
    if (packs_once) Pack<R, Tile>(a, row, 0, n_blocks, x);
    for (int tile = tile_begin; tile < tile_end; ++tile) {
      const Tile* w = static_cast<const Tile*>(a.tiles) + std::int64_t{tile} * n_blocks;
      __m256 acc[R][2];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_ps();
      for (int b = 0; b < n_blocks; b += kPackBlocks) {
        const int n = n_blocks - b < kPackBlocks ? n_blocks - b : kPackBlocks;
        if (!packs_once) Pack<R, Tile>(a, row, b, n, x);
        QuantStrip<R>(w + b, x, n, acc);
      }
      StoreTile<R>(a, row, tile, acc);
    }
  }
};

// ---- Float tiles --------------------------------------------------------------------------------

constexpr int kFloatRows = 6;  // 12 sums, two weights and a broadcast: 15 of 16 registers

struct F32 {
  using Storage = float;
  static FORETOKEN_INLINE __m256 Load(const float* w) { return _mm256_loadu_ps(w); }
};
struct F16 {
  using Storage = std::uint16_t;
  static FORETOKEN_INLINE __m256 Load(const std::uint16_t* w) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(w)));
  }
};
struct BF16 {
  using Storage = std::uint16_t;
  static FORETOKEN_INLINE __m256 Load(const std::uint16_t* w) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
};

// One k: acc[t][r] += w[t] * x[r].
template <int T, int R, typename Type>
FORETOKEN_INLINE void FloatStep(const typename Type::Storage* w, std::int64_t strip, const float* x,
                                std::int64_t x_stride, __m256 (&acc)[T][R][2]) {
#pragma GCC unroll 2
  for (int t = 0; t < T; ++t) {
    const __m256 w0 = Type::Load(w + t * strip), w1 = Type::Load(w + t * strip + 8);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256 xr = _mm256_broadcast_ss(x + r * x_stride);
      acc[t][r][0] = _mm256_fmadd_ps(w0, xr, acc[t][r][0]);
      acc[t][r][1] = _mm256_fmadd_ps(w1, xr, acc[t][r][1]);
    }
  }
}

// T strips side by side, so that few rows still give enough independent chains of fma.
template <int T, int R, typename Type>
FORETOKEN_INLINE void FloatStrips(const MatmulArgs& a, int row, int tile) {
  constexpr int kUnroll = 4;
  const std::int64_t strip = std::int64_t{a.k} * kTileOutputs;
  const auto* w = static_cast<const typename Type::Storage*>(a.tiles) + tile * strip;
  const float* x = a.x + row * a.x_stride;
  __m256 acc[T][R][2];
#pragma GCC unroll 2
  for (int t = 0; t < T; ++t)
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) acc[t][r][0] = acc[t][r][1] = _mm256_setzero_ps();
  int k = 0;
  for (; k + kUnroll <= a.k; k += kUnroll, x += kUnroll, w += kUnroll * kTileOutputs) {
#pragma GCC unroll 2
    for (int t = 0; t < T; ++t)
      PrefetchAhead<R, kUnroll * kTileOutputs * sizeof(*w)>(w + t * strip);
#pragma GCC unroll 4
    for (int i = 0; i < kUnroll; ++i)
      FloatStep<T, R, Type>(w + i * kTileOutputs, strip, x + i, a.x_stride, acc);
  }
  for (; k < a.k; ++k, ++x, w += kTileOutputs) FloatStep<T, R, Type>(w, strip, x, a.x_stride, acc);
#pragma GCC unroll 2
  for (int t = 0; t < T; ++t) StoreTile<R>(a, row, tile + t, acc[t]);
}

template <int R, typename Type>
struct FloatRows {
  static __attribute__((noinline)) void Run(const MatmulArgs& a, int row, int tile_begin,
                                            int tile_end) {
    constexpr int T = R <= 2 ? 2 : 1;
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
      QuantRows<1, Tile>::Run, QuantRows<2, Tile>::Run, QuantRows<3, Tile>::Run,
      QuantRows<4, Tile>::Run};
  ForRowBlocks(a, std::int64_t{a.k / kBlock} * static_cast<std::int64_t>(sizeof(Tile)), kByRows,
               kQuantRows);
}

template <typename Type>
void MatmulFloat(const MatmulArgs& a) {
  static constexpr RowsFunction kByRows[kFloatRows] = {
      FloatRows<1, Type>::Run, FloatRows<2, Type>::Run, FloatRows<3, Type>::Run,
      FloatRows<4, Type>::Run, FloatRows<5, Type>::Run, FloatRows<6, Type>::Run};
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

}  // namespace foretoken::kernels::avx2
