// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/weights.h: a run of 32 k of a tile of any quantised type as eight registers of
// unsigned bytes, and its scales. For this folder and amx/, whose processors have all of this.
#pragma once

#include "kernels/avx512/lanes.h"
#include "tensor/block_layout.h"

#define FORETOKEN_INLINE inline __attribute__((always_inline))

namespace foretoken::kernels::avx512 {
namespace {

constexpr int kBlock = tensor::kBlock;

// 64 bytes in a register: the compiler would load them anew for each use.
FORETOKEN_INLINE __m512i LoadOnce(const void* p) {
  __m512i v = _mm512_loadu_si512(p);
  asm("" : "+v"(v));
  return v;
}

FORETOKEN_INLINE __m512 LoadHalves(const std::uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

FORETOKEN_INLINE __m512 LoadBytes(const std::uint8_t* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
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

// Four bits of each byte of `low`, above them those of `high` that kMask leaves.
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

// Per tile type: runs of 32 k in a tile; what was added to its weights; whether it has minima; sums
// per run.
template <int kRunsOf, int kOffsetOf, bool kMinimumOf, int kSumsOf = 1>
struct Traits {
  static constexpr int kRuns = kRunsOf, kOffset = kOffsetOf, kSums = kSumsOf;
  static constexpr bool kMinimum = kMinimumOf;
};

// And of each: the run's weights in 8 registers; its scales, which hold what a tile's runs share.
// m is the negative of the contract's where the file subtracts its minima.
struct Q8_0 : Traits<1, 128, false> {
  using Tile = tensor::TileQ8_0;
  static FORETOKEN_INLINE void Weights(const Tile& t, int, __m512i* q) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) q[i] = LoadOnce(t.q[i]);
  }
};
struct Q4_0 : Traits<1, 8, false> {
  using Tile = tensor::TileQ4_0;
  static FORETOKEN_INLINE void Weights(const Tile& t, int, __m512i* q) { Nibbles(t.q, q); }
};
struct Q4_1 : Traits<1, 0, true> {
  using Tile = tensor::TileQ4_1;
  static FORETOKEN_INLINE void Weights(const Tile& t, int, __m512i* q) { Nibbles(t.q, q); }
};
struct Q5_0 : Traits<1, 16, false> {
  using Tile = tensor::TileQ5_0;
  static FORETOKEN_INLINE void Weights(const Tile& t, int, __m512i* q) { FiveBits(t.q, t.qh, q); }
};
struct Q5_1 : Traits<1, 0, true> {
  using Tile = tensor::TileQ5_1;
  static FORETOKEN_INLINE void Weights(const Tile& t, int, __m512i* q) { FiveBits(t.q, t.qh, q); }
};
struct Q4_K : Traits<8, 0, true> {
  using Tile = tensor::TileQ4_K;
  static FORETOKEN_INLINE void Weights(const Tile& t, int run, __m512i* q) {
    Nibbles(t.runs[run].q, q);
  }
};
struct Q5_K : Traits<8, 0, true> {
  using Tile = tensor::TileQ5_K;
  static FORETOKEN_INLINE void Weights(const Tile& t, int run, __m512i* q) {
    FiveBits(t.runs[run].q, t.runs[run].qh, q);
  }
};
struct Q6_K : Traits<8, 32, false, 2> {
  using Tile = tensor::TileQ6_K;
  static FORETOKEN_INLINE void Weights(const Tile& t, int run, __m512i* q) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const __m512i high = LoadOnce(t.runs[run].qh[h]);
      const __m512i low0 = LoadOnce(t.runs[run].q[2 * h]),
                    low1 = LoadOnce(t.runs[run].q[2 * h + 1]);
      q[4 * h] = WithHigh<63>(low0, _mm512_slli_epi16(high, 4));
      q[4 * h + 1] = WithHigh<63>(_mm512_srli_epi16(low0, 4), _mm512_slli_epi16(high, 2));
      q[4 * h + 2] = WithHigh<63>(low1, high);
      q[4 * h + 3] = WithHigh<63>(_mm512_srli_epi16(low1, 4), _mm512_srli_epi16(high, 2));
    }
  }
};

// What the runs of a tile share, and from it a run's s and m.
template <typename Type>
struct Scales {
  explicit FORETOKEN_INLINE Scales(const typename Type::Tile& t) : d(LoadHalves(t.d)) {
    if constexpr (Type::kMinimum && Type::kRuns == 1) minimum = LoadHalves(t.m);
    if constexpr (Type::kMinimum && Type::kRuns > 1) minimum = LoadHalves(t.dmin);
  }
  FORETOKEN_INLINE __m512 S(const typename Type::Tile& t, int run) const {
    if constexpr (Type::kMinimum && Type::kRuns > 1)
      return _mm512_mul_ps(d, LoadBytes(t.scale[run]));
    return d;
  }
  FORETOKEN_INLINE __m512 M(const typename Type::Tile& t, int run) const {
    if constexpr (Type::kRuns > 1) return _mm512_mul_ps(minimum, LoadBytes(t.minimum[run]));
    return minimum;
  }
  __m512 d, minimum;
};

}  // namespace
}  // namespace foretoken::kernels::avx512
