// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/exp.h: Exp of kernels/kernels.h for vectors of 8 values, for this folder only.
#pragma once

#include <immintrin.h>

namespace foretoken::kernels::avx2 {
namespace {

// Several vectors in step: one alone is a chain of some 15 operations that each wait for the one
// before.
template <int kCount>
inline void Exp(__m256 (&x)[kCount]) {
  __m256 keep[kCount];
  __m256 shifted[kCount], r[kCount], y[kCount];
  const __m256 magic = _mm256_set1_ps(12582912.0f);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    keep[i] = _mm256_cmp_ps(x[i], _mm256_set1_ps(-87.33654f), _CMP_NLT_UQ);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) x[i] = _mm256_min_ps(_mm256_set1_ps(88.37626f), x[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    shifted[i] = _mm256_fmadd_ps(x[i], _mm256_set1_ps(1.44269504f), magic);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) y[i] = _mm256_sub_ps(shifted[i], magic);  // n
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    r[i] = _mm256_fmadd_ps(y[i], _mm256_set1_ps(-0.693359375f), x[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    r[i] = _mm256_fmadd_ps(y[i], _mm256_set1_ps(2.12194440e-4f), r[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    y[i] =
        _mm256_fmadd_ps(_mm256_set1_ps(1.9875691500e-4f), r[i], _mm256_set1_ps(1.3981999507e-3f));
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    y[i] = _mm256_fmadd_ps(y[i], r[i], _mm256_set1_ps(8.3334519073e-3f));
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    y[i] = _mm256_fmadd_ps(y[i], r[i], _mm256_set1_ps(4.1665795894e-2f));
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    y[i] = _mm256_fmadd_ps(y[i], r[i], _mm256_set1_ps(1.6666665459e-1f));
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    y[i] = _mm256_fmadd_ps(y[i], r[i], _mm256_set1_ps(5.0000001201e-1f));
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) y[i] = _mm256_fmadd_ps(y[i], _mm256_mul_ps(r[i], r[i]), r[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) y[i] = _mm256_add_ps(y[i], _mm256_set1_ps(1.0f));
    // The low bits of `shifted` are the integer n; moved up they are an exponent.
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
    const __m256i n = _mm256_slli_epi32(_mm256_castps_si256(shifted[i]), 23);
    const __m256i power = _mm256_add_epi32(n, _mm256_set1_epi32(0x3f800000));
    x[i] = _mm256_and_ps(keep[i], _mm256_mul_ps(y[i], _mm256_castsi256_ps(power)));
  }
}

inline __m256 Exp(__m256 x) {
  __m256 one[1] = {x};
  Exp(one);
  return one[0];
}

}  // namespace
}  // namespace foretoken::kernels::avx2
