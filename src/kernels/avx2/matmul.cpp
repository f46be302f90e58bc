// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/matmul.cpp: the sums of products. Without VNNI, integer products are vpmaddubsw:
// unsigned weights by signed activations, neighbours added in 16 bits. All are exact; more of them
// are added in 16 bits as long as they fit, and then one vpmaddwd widens:
//   4 bits  all 8 words of a run: at most 8 * 2 * 15 * 127 = 30480
//   5 bits  4 words: 4 * 2 * 31 * 127 = 31496
//   6 bits  2 words: 2 * 2 * 63 * 127 = 32004; the vpmaddwd multiplies by the scale as well
//   8 bits  as two times 4 bits; the vpmaddwd of the upper ones multiplies by 16. To split them
//           pays from two rows on; one row takes vpmaddubsw(|w|, x with the sign of w): w = q - 128
//           lies in [-128, 127], |x| <= 127, so a pair is at most 2 * 128 * 127 = 32512
#include <immintrin.h>

#include "kernels/avx2/functions.h"
#include "kernels/avx2/quantised.h"
#include "kernels/avx2/strips.h"

namespace foretoken::kernels::avx2 {
namespace {

// ---- Quantised tiles ----------------------------------------------------------------------------

// Pairs of words whose products fit in 16 bits.
constexpr int PairsThatFit(int bits) {
  return bits == 4 ? 4 : bits == 5 ? 2 : 1;
}

FORETOKEN_INLINE __m256i Products(const Words& w, const std::int32_t* q) {
  return _mm256_add_epi16(_mm256_maddubs_epi16(w.even, _mm256_set1_epi32(q[0])),
                          _mm256_maddubs_epi16(w.odd, _mm256_set1_epi32(q[1])));
}

// to += p. The compiler would turn a chain of sums into a tree, and run out of registers.
FORETOKEN_INLINE void AddInOrder(__m256i& to, __m256i p) {
  to = _mm256_add_epi16(to, p);
  asm("" : "+x"(to));
}

// What the 16-bit sums from word pair i on are multiplied by.
template <typename Type>
FORETOKEN_INLINE __m256i Factor(const typename Type::Tile& t, int run, int h, int i) {
  if constexpr (Type::kBits == 6)
    return PairScales(t.scale[run][i / 2] + 8 * h, t.scale[run][i / 2] + 8 * h);
  else
    return _mm256_set1_epi16(1);
}

struct Maddubs {
  template <typename Type>
  static constexpr int kRows = Type::kBits == 8   ? 4
                               : Type::kBits == 6 ? 6
                                                  : kMaxRows;

  template <int R, typename Type>
  static FORETOKEN_INLINE void Sums(const typename Type::Tile& t, int run, int h,
                                    const PackedRow* rows, __m256i* sum) {
    if constexpr (Type::kBits == 8 && R == 1) {
      sum[0] = SignedSum(t, h, rows[0]);
    } else {
      StartSums<R, Type>(t, run, h, rows, sum);
      if constexpr (Type::kBits == 8)
        AddBytes<R>(t, h, rows, sum);
      else
        AddFewBits<R, Type>(t, run, h, rows, sum);
    }
  }

  template <int R, typename Type>
  static FORETOKEN_INLINE void AddFewBits(const typename Type::Tile& t, int run, int h,
                                          const PackedRow* rows, __m256i* sum) {
    constexpr int kPairs = PairsThatFit(Type::kBits);
#pragma GCC unroll 4
    for (int first = 0; first < 4; first += kPairs) {
      __m256i part[R];
#pragma GCC unroll 4
      for (int i = first; i < first + kPairs; ++i) {
        const Words w = Type::Pair(t, run, h, i);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const __m256i p = Products(w, rows[r].q + 2 * i);
          if (i == first)
            part[r] = p;
          else
            AddInOrder(part[r], p);
        }
      }
      const __m256i factor = Factor<Type>(t, run, h, first);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sum[r] = _mm256_add_epi32(sum[r], _mm256_madd_epi16(part[r], factor));
    }
  }

  static FORETOKEN_INLINE __m256i SignedSum(const tensor::TileQ8_0& t, int h,
                                            const PackedRow& row) {
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const __m256i w = _mm256_xor_si256(Load(t.q[i][8 * h]), _mm256_set1_epi8(-128));
      const __m256i x = _mm256_sign_epi8(_mm256_set1_epi32(row.q[i]), w);
      const __m256i p = _mm256_maddubs_epi16(_mm256_abs_epi8(w), x);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(p, _mm256_set1_epi16(1)));
    }
    return sum;
  }

  template <int R>
  static FORETOKEN_INLINE void AddBytes(const tensor::TileQ8_0& t, int h, const PackedRow* rows,
                                        __m256i* sum) {
    __m256i low[R], high[R];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      const Words w = Nibbles(t.q[i] + 8 * h);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) {
        const __m256i x = _mm256_set1_epi32(rows[r].q[i]);
        const __m256i p0 = _mm256_maddubs_epi16(w.even, x), p1 = _mm256_maddubs_epi16(w.odd, x);
        if (i == 0) {
          low[r] = p0;
          high[r] = p1;
        } else {
          AddInOrder(low[r], p0);
          AddInOrder(high[r], p1);
        }
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i lower = _mm256_madd_epi16(low[r], _mm256_set1_epi16(1));
      const __m256i upper = _mm256_madd_epi16(high[r], _mm256_set1_epi16(16));
      sum[r] = _mm256_add_epi32(sum[r], _mm256_add_epi32(lower, upper));
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
  MatmulQuantised<Q8_0, Maddubs>(a);
}
void MatmulQ4_0(const MatmulArgs& a) {
  MatmulQuantised<Q4_0, Maddubs>(a);
}
void MatmulQ4_1(const MatmulArgs& a) {
  MatmulQuantised<Q4_1, Maddubs>(a);
}
void MatmulQ5_0(const MatmulArgs& a) {
  MatmulQuantised<Q5_0, Maddubs>(a);
}
void MatmulQ5_1(const MatmulArgs& a) {
  MatmulQuantised<Q5_1, Maddubs>(a);
}
void MatmulQ4_K(const MatmulArgs& a) {
  MatmulQuantised<Q4_K, Maddubs>(a);
}
void MatmulQ5_K(const MatmulArgs& a) {
  MatmulQuantised<Q5_K, Maddubs>(a);
}
void MatmulQ6_K(const MatmulArgs& a) {
  MatmulQuantised<Q6_K, Maddubs>(a);
}

}  // namespace foretoken::kernels::avx2
