// SPDX-License-Identifier: Apache-2.0
// kernels/avxvnni/vpdpbusd.h: AVX2's products of quantised tiles with integer sums by vpdpbusd:
// unsigned weights by signed activations, four products added to each 32-bit lane, exact. The
// instruction has two codings: that of AVX-VNNI, and that of AVX-512 for 256 bits. So it is a
// parameter, and each coding can be tested on processors that know it:
//
//   struct Dot {
//     static __m256i Add(__m256i sum, __m256i w, __m256i x);  // sum + w . x
//   };
#pragma once

#include "kernels/avx2/quantised.h"

namespace foretoken::kernels::avxvnni {
namespace {

using avx2::Row;

template <class Dot>
struct Vpdpbusd {
  template <class>
  static constexpr int kRows = avx2::kMaxRows;
  template <class Type>
  static constexpr int kLoneRows = kRows<Type>;
  template <class Type, int R>
  static constexpr bool kIsWide = false;
  template <class>
  static constexpr int kAddedOffset = 0;
  template <class>
  static constexpr int kHalves = 1;  // so that the sums of 8 rows fit the registers
  static constexpr bool kAsksForNext = false;

  template <int R, class Type>
  static FORETOKEN_INLINE void Sums(const typename Type::Tile& t, int run, int h,
                                    const Row<Type>* rows, __m256i (*sum)[R]) {
    const avx2::Starts<Type> starts(t, run, h);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) sum[0][r] = starts.Of(rows[r]);
    if constexpr (Type::kSums == 2)
      AddScaled<R, Type>(t, run, h, rows, sum[0]);
    else
      AddPairs<R, Type>(t, run, h, 0, 4, rows, sum[0]);
  }

  // sum[r] += w . x over word pairs [begin, end) of a run.
  template <int R, class Type>
  static FORETOKEN_INLINE void AddPairs(const typename Type::Tile& t, int run, int h, int begin,
                                        int end, const Row<Type>* rows, __m256i* sum) {
#pragma GCC unroll 4
    for (int i = begin; i < end; ++i) {
      const avx2::Words w = avx2::Pair<Type>(t, run, h, i);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sum[r] = Dot::Add(sum[r], w.even, _mm256_set1_epi32(rows[r].q[2 * i]));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sum[r] = Dot::Add(sum[r], w.odd, _mm256_set1_epi32(rows[r].q[2 * i + 1]));
    }
  }

  // Sums over a run whose halves have scales.
  template <int R, class Type>
  static FORETOKEN_INLINE void AddScaled(const typename Type::Tile& t, int run, int h,
                                         const Row<Type>* rows, __m256i* sum) {
    if constexpr (Type::kBits <= 3) return AddScaledPairs<R, Type>(t, run, h, rows, sum);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m256i part[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) part[r] = _mm256_setzero_si256();
      AddPairs<R, Type>(t, run, h, 2 * half, 2 * half + 2, rows, part);
      const __m256i scale = avx2::HalfScale<Type>(t, run, half, h);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sum[r] = _mm256_add_epi32(sum[r], _mm256_mullo_epi32(part[r], scale));
    }
  }

  // Two and three bits: a half's sum is at most 16 * 7 * 127, so that those of both halves fit 16 bits.
  template <int R, class Type>
  static FORETOKEN_INLINE void AddScaledPairs(const typename Type::Tile& t, int run, int h,
                                              const Row<Type>* rows, __m256i* sum) {
    __m256i first[R], second[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) first[r] = second[r] = _mm256_setzero_si256();
    AddPairs<R, Type>(t, run, h, 0, 2, rows, first);
    AddPairs<R, Type>(t, run, h, 2, 4, rows, second);
    const __m256i scales = avx2::BothScales<Type>(t, run, h);
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r) {
      const __m256i pairs = _mm256_blend_epi16(first[r], _mm256_slli_epi32(second[r], 16), 0xaa);
      sum[r] = _mm256_add_epi32(sum[r], _mm256_madd_epi16(pairs, scales));
    }
  }
};

// The products that vpdpbusd improves: those of quantised tiles.
template <class Dot>
constexpr Kernels ProductsWith() {
  return generic::ProductsOf<avx2::Core<Vpdpbusd<Dot>>>::OfQuantisedTypes();
}

}  // namespace
}  // namespace foretoken::kernels::avxvnni
