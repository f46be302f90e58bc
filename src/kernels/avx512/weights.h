// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/weights.h: a run of 32 k of a tile of any quantised type as eight registers of
// unsigned bytes. For this folder and for amx/, whose processors have AVX-512 too.
#pragma once

#include "kernels/avx2/prefetch.h"
#include "kernels/avx512/lanes.h"
#include "kernels/generic/tiles.h"

namespace foretoken::kernels::avx512 {
namespace {

// Distances of prefetching. Each request keeps a line of the first level occupied until it is answered, so
// few rows, which hurry, ask for each line once: 6 kB ahead for one row, 8 kB ahead for the second level
// for two and three. Share of the speed of plain reading, one thread of Zen 4:
//                4 kB and 512 bytes   8 kB and 1 kB   6 kB, first level   8 kB, second level
//   Q4_0, 1 row                0.66            0.69                0.95                 0.75
//   Q4_0, 3 rows               0.60            0.91                0.74                 0.95
//   Q6_K, 1 row                0.66            0.70                0.84                 0.75
//   Q6_K, 3 rows               0.62            0.89                0.60                 0.91
//   Q8_0, 1 row                0.85            0.70                0.77                 0.65
// ns per run of a tile, 2 threads of a Xeon with AMX (Sapphire Rapids), measured in two steps alone:
//                  no prefetch   4 kB and 512 bytes   8 kB and 1 kB
//   Q4_0,  1 row          25.6                 17.3            18.7
//   Q8_0,  1 row             -                 32.8            35.6
//   Q8_0,  3 rows         45.2                 33.5            34.6
//   Q8_0, 16 rows            -                 52.9            51.4
using avx2::PrefetchAhead;

// How much of the second-level cache row blocks share, for generic::ForRowBlocks.
struct CacheShare {
  static constexpr std::int64_t kCacheBytes = 4096 << 10;
  static constexpr int kLeastStrips = 32;
};

// 64 bytes in a register. Without the asm the compiler would load them anew for each use.
FORETOKEN_INLINE __m512i LoadOnce(const void* p) {
  __m512i v = _mm512_loadu_si512(p);
  asm("" : "+v"(v));
  return v;
}

FORETOKEN_INLINE void Nibbles(const std::uint8_t (*from)[16][4], __m512i* q) {
  const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i both = LoadOnce(from[i]);
    q[2 * i] = _mm512_and_si512(both, low);
    q[2 * i + 1] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
  }
}

// Four bits of each byte of `low`, and above them the bits of `high` that kMask leaves.
template <int kMask>
FORETOKEN_INLINE __m512i WithHigh(__m512i low, __m512i high) {
  constexpr int kSelect = 0xd8;  // third ? second : first
  const __m512i nibble = _mm512_set1_epi8(15), mask = _mm512_set1_epi8(kMask);
  return _mm512_and_si512(_mm512_ternarylogic_epi64(high, low, nibble, kSelect), mask);
}

FORETOKEN_INLINE void FiveBits(const std::uint8_t (*from)[16][4], const std::uint8_t (*qh)[4],
                               __m512i* q) {
  const __m512i high = LoadOnce(qh);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i both = LoadOnce(from[i]);
    const __m512i even = 2 * i < 4 ? _mm512_slli_epi16(high, 2 * i < 4 ? 4 - 2 * i : 0)
                                   : _mm512_srli_epi16(high, 2 * i < 4 ? 0 : 2 * i - 4);
    const __m512i odd = 2 * i + 1 < 4 ? _mm512_slli_epi16(high, 2 * i + 1 < 4 ? 3 - 2 * i : 0)
                                      : _mm512_srli_epi16(high, 2 * i + 1 < 4 ? 0 : 2 * i - 3);
    q[2 * i] = WithHigh<31>(both, even);
    q[2 * i + 1] = WithHigh<31>(_mm512_srli_epi16(both, 4), odd);
  }
}

FORETOKEN_INLINE void SixBits(const std::uint8_t (*from)[16][4], const std::uint8_t (*qh)[16][4],
                              __m512i* q) {
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m512i high = LoadOnce(qh[h]);
    const __m512i low0 = LoadOnce(from[2 * h]), low1 = LoadOnce(from[2 * h + 1]);
    q[4 * h] = WithHigh<63>(low0, _mm512_slli_epi16(high, 4));
    q[4 * h + 1] = WithHigh<63>(_mm512_srli_epi16(low0, 4), _mm512_slli_epi16(high, 2));
    q[4 * h + 2] = WithHigh<63>(low1, high);
    q[4 * h + 3] = WithHigh<63>(_mm512_srli_epi16(low1, 4), _mm512_srli_epi16(high, 2));
  }
}

// Codes to weights.
template <class Type>
FORETOKEN_INLINE void LookUp(__m512i* q) {
  const __m512i table =
      _mm512_broadcast_i32x4(Lanes::Half::Load16(generic::kCodeWeights<Type, Type::kOffset>.of));
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) q[i] = _mm512_shuffle_epi8(table, q[i]);
}

// The four bytes of each output's word: to 4 o % 16 + 0, 1, 2, 3 belongs what the low two bits of a
// byte name. Bits [2 f, 2 f + 2) of `bits` as such an index.
template <int f>
FORETOKEN_INLINE __m512i PairIndex(__m512i bits) {
  constexpr int kAndOr = 0xea;  // (first & second) | third
  const __m512i place =
      _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
  return _mm512_ternarylogic_epi64(_mm512_srli_epi16(bits, 2 * f), _mm512_set1_epi8(3), place,
                                   kAndOr);
}

// The weights of Q2_K and Q3_K come times their scales, which fits a byte: 15 * 3, and for Q3_K,
// with 127 added, 127 + 31 * -4 to 127 + -32 * -4. So a run has one sum. The products of an
// output's scale with the four codes are a word, and the words of four outputs a table for the byte
// shuffle.
FORETOKEN_INLINE __m512i WordOfScales(const void* scale16, bool is_signed) {
  const __m128i bytes = Lanes::Half::Load16(scale16);
  return is_signed ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
}

FORETOKEN_INLINE void ScaledTwoBits(const tensor::TileQ2_K& tile, int run, __m512i* q) {
#pragma GCC unroll 2
  for (int h = 0; h < 2; ++h) {
    const __m512i scale =
        _mm512_and_si512(WordOfScales(tile.scale[run][h], false), _mm512_set1_epi32(15));
    const __m512i table = _mm512_mullo_epi32(scale, _mm512_set1_epi32(0x03020100));
    const __m512i bits = LoadOnce(tile.runs[run].q[h]);
    q[4 * h] = _mm512_shuffle_epi8(table, PairIndex<0>(bits));
    q[4 * h + 1] = _mm512_shuffle_epi8(table, PairIndex<1>(bits));
    q[4 * h + 2] = _mm512_shuffle_epi8(table, PairIndex<2>(bits));
    q[4 * h + 3] = _mm512_shuffle_epi8(table, PairIndex<3>(bits));
  }
}

// w where bit kBit of `third` is not set, and w + step where it is.
template <int kBit>
FORETOKEN_INLINE __m512i WithThird(__m512i w, __m512i third, __m512i step) {
  const __mmask64 set =
      _mm512_test_epi8_mask(third, _mm512_set1_epi8(static_cast<char>(1 << kBit)));
  return _mm512_mask_add_epi8(w, set, w, step);
}

// A table holds 127 + scale * (q - 4) for q = 0 .. 3; the third bit adds 4 * scale.
template <int h>
FORETOKEN_INLINE void ScaledThreeBits(const tensor::TileQ3_K& tile, int run, __m512i third,
                                      __m512i* q) {
  constexpr std::uint32_t kMinusFour = 0u - 0x01020304u;
  const __m512i scale = WordOfScales(tile.scale[run][h], true);
  const __m512i table =
      _mm512_add_epi32(_mm512_mullo_epi32(scale, _mm512_set1_epi32(static_cast<int>(kMinusFour))),
                       _mm512_set1_epi32(0x7f7f7f7f));
  const __m512i spread =
      _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
  const __m512i step = _mm512_shuffle_epi8(_mm512_slli_epi32(scale, 2), spread);
  const __m512i bits = LoadOnce(tile.runs[run].q[h]);
  q[0] = WithThird<4 * h>(_mm512_shuffle_epi8(table, PairIndex<0>(bits)), third, step);
  q[1] = WithThird<4 * h + 1>(_mm512_shuffle_epi8(table, PairIndex<1>(bits)), third, step);
  q[2] = WithThird<4 * h + 2>(_mm512_shuffle_epi8(table, PairIndex<2>(bits)), third, step);
  q[3] = WithThird<4 * h + 3>(_mm512_shuffle_epi8(table, PairIndex<3>(bits)), third, step);
}

// The weights of a run.
template <class Type>
FORETOKEN_INLINE void Weights(const typename Type::Tile& tile, int run, __m512i* q) {
  const auto& weights = Type::Run(tile, run);
  if constexpr (Type::kBits == 2) {
    ScaledTwoBits(tile, run, q);
  } else if constexpr (Type::kBits == 3) {
    const __m512i third = LoadOnce(weights.qh);
    ScaledThreeBits<0>(tile, run, third, q);
    ScaledThreeBits<1>(tile, run, third, q + 4);
  } else if constexpr (Type::kBits == 4) {
    Nibbles(weights.q, q);
    if constexpr (Type::kHasTable) LookUp<Type>(q);
  } else if constexpr (Type::kBits == 5) {
    FiveBits(weights.q, weights.qh, q);
  } else if constexpr (Type::kBits == 6) {
    SixBits(weights.q, weights.qh, q);
  } else {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) q[i] = LoadOnce(weights.q[i]);
  }
}

}  // namespace
}  // namespace foretoken::kernels::avx512
