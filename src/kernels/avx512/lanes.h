// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/lanes.h: the 16 lanes of kernels/kernels.h and their fold, for this folder only.
// Also the door to <immintrin.h>.
#pragma once

#pragma GCC diagnostic push  // false alarms of g++ 12 inside its own header
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace foretoken::kernels::avx512 {
namespace {

constexpr int kLanes = 16;

// The first n lanes, n in [0, 16].
inline __mmask16 FirstLanes(int n) {
  return static_cast<__mmask16>((1u << n) - 1);
}

inline float FoldSum(__m512 lanes) {
  const __m256 eight =
      _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline float FoldMax(__m512 lanes) {
  const __m256 eight =
      _mm256_max_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// 16 sums in double.
struct DoubleLanes {
  __m512d low = _mm512_setzero_pd(), high = _mm512_setzero_pd();

  void Add(__m512 x) {
    low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm512_castps512_ps256(x)));
    high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1)));
  }
  double Fold() const {
    const __m512d eight = _mm512_add_pd(low, high);
    const __m256d four =
        _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

}  // namespace
}  // namespace foretoken::kernels::avx512
