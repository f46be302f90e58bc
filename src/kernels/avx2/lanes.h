// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/lanes.h: the 16 lanes of kernels/kernels.h in two halves, and their fold, for this
// folder only.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace foretoken::kernels::avx2 {
namespace {

constexpr int kLanes = 16;
constexpr int kHalf = 8;

constexpr std::int32_t kMasks[2 * kHalf] = {-1, -1, -1, -1, -1, -1, -1, -1};

// The first n lanes of a vector of 8; all of them for n > 8, none for n < 0.
inline __m256i FirstLanes(int n) {
  n = n < 0 ? 0 : n > kHalf ? kHalf : n;
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMasks + kHalf - n));
}

inline float FoldSum(__m256 low, __m256 high) {
  const __m256 eight = _mm256_add_ps(low, high);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

inline float FoldMax(__m256 eight) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// 16 sums in double, four to a vector.
struct DoubleLanes {
  __m256d a = _mm256_setzero_pd(), b = _mm256_setzero_pd(), c = _mm256_setzero_pd(),
          d = _mm256_setzero_pd();

  void Add(__m256 low, __m256 high) {
    a = _mm256_add_pd(a, _mm256_cvtps_pd(_mm256_castps256_ps128(low)));
    b = _mm256_add_pd(b, _mm256_cvtps_pd(_mm256_extractf128_ps(low, 1)));
    c = _mm256_add_pd(c, _mm256_cvtps_pd(_mm256_castps256_ps128(high)));
    d = _mm256_add_pd(d, _mm256_cvtps_pd(_mm256_extractf128_ps(high, 1)));
  }
  double Fold() const {
    const __m256d four = _mm256_add_pd(_mm256_add_pd(a, c), _mm256_add_pd(b, d));
    const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
  }
};

}  // namespace
}  // namespace foretoken::kernels::avx2
