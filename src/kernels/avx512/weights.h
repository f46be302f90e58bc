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

// ---- Two and three bits -------------------------------------------------------------------------

// Scales of both halves of a run, side by side as 16 bits, of Q2_K the low four bits.
FORETOKEN_INLINE __m512i PairsOfScales(const tensor::TileQ2_K& tile, int run) {
  return _mm512_and_si512(Lanes::Raw(Lanes::LoadBytePairs(tile.scale[run][0])),
                          _mm512_set1_epi16(15));
}
FORETOKEN_INLINE __m512i PairsOfScales(const tensor::TileQ3_K& tile, int run) {
  return _mm512_cvtepi8_epi16(Lanes::Load32(tile.scale[run]));
}

// Few rows meet the weights where they lie in their bytes. So word w comes times a power of two, and
// sums over words are moved to a common one.
//   Q2_K, words 0 to 7: 1, 1, 4, 4, 16, 16, 64, 64
//   Q3_K, words 0 to 7: 1, 1, 1, 32, 8, 8, 8, 16
FORETOKEN_INLINE void InPlace(const tensor::TileQ2_K& tile, int run, __m512i* q) {
  const __m512i bits[2] = {LoadOnce(tile.runs[run].q[0]), LoadOnce(tile.runs[run].q[1])};
#pragma GCC unroll 8
  for (int w = 0; w < 8; ++w)
    q[w] = _mm512_and_si512(bits[w % 2], _mm512_set1_epi8(static_cast<char>(3 << (w / 2 * 2))));
}
FORETOKEN_INLINE void InPlace(const tensor::TileQ3_K& tile, int run, __m512i* q) {
  constexpr int kSelect = 0xd8;  // third ? second : first
  const auto& from = tile.runs[run].q;
  const __m512i bits[3] = {LoadOnce(from[0]), LoadOnce(from[1]), LoadOnce(from[2])};
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    q[i] = _mm512_and_si512(bits[i], _mm512_set1_epi8(0x07));
    q[i + 4] = _mm512_and_si512(bits[i], _mm512_set1_epi8(0x38));
  }
  q[3] = _mm512_and_si512(
      _mm512_ternarylogic_epi64(_mm512_srli_epi16(bits[0], 1), bits[1],
                                _mm512_set1_epi8(static_cast<char>(0x80)), kSelect),
      _mm512_set1_epi8(static_cast<char>(0xe0)));
  q[7] = _mm512_and_si512(_mm512_ternarylogic_epi64(_mm512_srli_epi16(bits[2], 2), bits[1],
                                                    _mm512_set1_epi8(0x40), kSelect),
                          _mm512_set1_epi8(0x70));
}

// The four bytes of each output's word: to 4 o % 16 + 0, 1, 2, 3 belongs what the low two bits of a
// byte name. Bits [kFrom, kFrom + 2) of `bits` as such an index.
template <int kFrom>
FORETOKEN_INLINE __m512i PairIndex(__m512i bits) {
  constexpr int kAndOr = 0xea;  // (first & second) | third
  const __m512i place =
      _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
  return _mm512_ternarylogic_epi64(_mm512_srli_epi16(bits, kFrom), _mm512_set1_epi8(3), place,
                                   kAndOr);
}

// More rows meet weights times their scales, which fits a byte: 15 * 3, and for Q3_K, with 127 added,
// 127 + 31 * -4 to 127 + -32 * -4. So a run has one sum. The products of an output's scale with the
// four codes are a word, and the words of four outputs a table for the byte shuffle.
FORETOKEN_INLINE void Scaled(const tensor::TileQ2_K& tile, int run, __m512i* q) {
  const __m512i pairs = PairsOfScales(tile, run), codes = _mm512_set1_epi32(0x03020100);
  const __m512i bits[2] = {LoadOnce(tile.runs[run].q[0]), LoadOnce(tile.runs[run].q[1])};
  const __m512i first = _mm512_mullo_epi32(_mm512_and_si512(pairs, _mm512_set1_epi32(15)), codes),
                second = _mm512_mullo_epi32(_mm512_srli_epi32(pairs, 16), codes);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    q[i] = _mm512_shuffle_epi8(first, PairIndex<0>(bits[i]));
    q[i + 2] = _mm512_shuffle_epi8(first, PairIndex<2>(bits[i]));
    q[i + 4] = _mm512_shuffle_epi8(second, PairIndex<4>(bits[i]));
    q[i + 6] = _mm512_shuffle_epi8(second, PairIndex<6>(bits[i]));
  }
}

// 127 + scale * (q - 4) of a half of a run: a table for q = 0 .. 3, and what the third bit adds.
struct ThreeBitScale {
  explicit FORETOKEN_INLINE ThreeBitScale(__m512i scale) {
    constexpr std::uint32_t kMinusFour = 0u - 0x01020304u;
    const __m512i spread =
        _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
    table =
        _mm512_add_epi32(_mm512_mullo_epi32(scale, _mm512_set1_epi32(static_cast<int>(kMinusFour))),
                         _mm512_set1_epi32(0x7f7f7f7f));
    step = _mm512_shuffle_epi8(_mm512_slli_epi32(scale, 2), spread);
  }
  // The low two bits from bit kFrom of `low` on, the third one bit kThird of `high`.
  template <int kFrom, int kThird>
  FORETOKEN_INLINE __m512i Of(__m512i low, __m512i high) const {
    const __mmask64 set =
        _mm512_test_epi8_mask(high, _mm512_set1_epi8(static_cast<char>(1 << kThird)));
    const __m512i w = _mm512_shuffle_epi8(table, PairIndex<kFrom>(low));
    return _mm512_mask_add_epi8(w, set, w, step);
  }
  __m512i table, step;
};

FORETOKEN_INLINE void Scaled(const tensor::TileQ3_K& tile, int run, __m512i* q) {
  const auto& from = tile.runs[run].q;
  const __m512i bits[3] = {LoadOnce(from[0]), LoadOnce(from[1]), LoadOnce(from[2])};
  const __m512i pairs = PairsOfScales(tile, run);
  const ThreeBitScale first(_mm512_srai_epi32(_mm512_slli_epi32(pairs, 16), 16)),
      second(_mm512_srai_epi32(pairs, 16));
#pragma GCC unroll 3
  for (int i = 0; i < 3; ++i) {
    q[i] = first.Of<0, 2>(bits[i], bits[i]);
    q[i + 4] = second.Of<3, 5>(bits[i], bits[i]);
  }
  q[3] = first.Of<6, 7>(bits[0], bits[1]);
  q[7] = second.Of<6, 6>(bits[2], bits[1]);
}

// The weights of a run, of two and three bits times their scales.
template <class Type>
FORETOKEN_INLINE void Weights(const typename Type::Tile& tile, int run, __m512i* q) {
  const auto& weights = Type::Run(tile, run);
  if constexpr (Type::kBits <= 3) {
    Scaled(tile, run, q);
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
