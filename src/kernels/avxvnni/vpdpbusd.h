// SPDX-License-Identifier: Apache-2.0
// kernels/avxvnni/vpdpbusd.h: AVX2's products of quantised tiles with integer sums by vpdpbusd:
// unsigned weights by signed activations, four products added to each 32-bit lane, exact. The
// instruction has two codings: that of AVX-VNNI and, for the same 256 bits, that of AVX-512; so it
// is a parameter, and each can be tested where a processor knows it:
//
//   struct Dot {
//     static __m256i Add(__m256i sum, __m256i w, __m256i x);  // sum + w . x
//   };
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/avx2/quantised.h"

namespace foretoken::kernels::avxvnni {
namespace {

using avx2::PackedRow;

template <typename Dot>
struct Vpdpbusd {
  template <typename>
  static constexpr int kRows = avx2::kMaxRows;

  template <int R, typename Type>
  static FORETOKEN_INLINE void Sums(const typename Type::Tile& t, int run, int h,
                                    const PackedRow* rows, __m256i* sum) {
    avx2::StartSums<R, Type>(t, run, h, rows, sum);
    if constexpr (Type::kBits == 6)
      AddScaled<R>(t, run, h, rows, sum);
    else
      AddPairs<R, Type>(t, run, h, 0, 4, rows, sum);
  }

  // sum[r] += w . x over word pairs [begin, end) of a run.
  template <int R, typename Type>
  static FORETOKEN_INLINE void AddPairs(const typename Type::Tile& t, int run, int h, int begin,
                                        int end, const PackedRow* rows, __m256i* sum) {
#pragma GCC unroll 4
    for (int i = begin; i < end; ++i) {
      const avx2::Words w = Type::Pair(t, run, h, i);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sum[r] = Dot::Add(sum[r], w.even, _mm256_set1_epi32(rows[r].q[2 * i]));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sum[r] = Dot::Add(sum[r], w.odd, _mm256_set1_epi32(rows[r].q[2 * i + 1]));
    }
  }

  // The same over a run of Q6_K, each half of it times its scale.
  template <int R>
  static FORETOKEN_INLINE void AddScaled(const tensor::TileQ6_K& t, int run, int h,
                                         const PackedRow* rows, __m256i* sum) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m256i part[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) part[r] = _mm256_setzero_si256();
      AddPairs<R, avx2::Q6_K>(t, run, h, 2 * half, 2 * half + 2, rows, part);
      const __m256i scale = _mm256_cvtepi8_epi32(avx2::LoadEight(t.scale[run][half] + 8 * h));
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
        sum[r] = _mm256_add_epi32(sum[r], _mm256_mullo_epi32(part[r], scale));
    }
  }
};

// The kernels that vpdpbusd improves, and no other.
template <typename Dot>
constexpr Kernels TableWith(const char* isa) {
  using Product = Vpdpbusd<Dot>;
  return {
      .isa = isa,
      .matmul = {
          nullptr, nullptr, nullptr, avx2::MatmulQuantised<avx2::Q8_0, Product>,
          avx2::MatmulQuantised<avx2::Q4_0, Product>, avx2::MatmulQuantised<avx2::Q4_1, Product>,
          avx2::MatmulQuantised<avx2::Q5_0, Product>, avx2::MatmulQuantised<avx2::Q5_1, Product>,
          avx2::MatmulQuantised<avx2::Q4_K, Product>, avx2::MatmulQuantised<avx2::Q5_K, Product>,
          avx2::MatmulQuantised<avx2::Q6_K, Product>}};
}

}  // namespace
}  // namespace foretoken::kernels::avxvnni
