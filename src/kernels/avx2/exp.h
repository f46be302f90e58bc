// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/exp.h: Exp of kernels/kernels.h for 8 values, for this folder only.
#pragma once

#include <immintrin.h>

namespace foretoken::kernels::avx2 {
namespace {

inline __m256 Exp(__m256 x) {
  const __m256 keep = _mm256_cmp_ps(x, _mm256_set1_ps(-87.33654f), _CMP_NLT_UQ);
  x = _mm256_min_ps(_mm256_set1_ps(88.37626f), x);
  const __m256 magic = _mm256_set1_ps(12582912.0f);
  const __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(1.44269504f), magic);
  const __m256 n = _mm256_sub_ps(shifted, magic);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-0.693359375f), x);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(2.12194440e-4f), r);
  __m256 y = _mm256_set1_ps(1.9875691500e-4f);
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.3981999507e-3f));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(8.3334519073e-3f));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(4.1665795894e-2f));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.6666665459e-1f));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(5.0000001201e-1f));
  y = _mm256_add_ps(_mm256_fmadd_ps(y, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
  // The low bits of `shifted` are the integer n; moved up they are an exponent.
  const __m256i power = _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23),
                                         _mm256_set1_epi32(0x3f800000));
  return _mm256_and_ps(keep, _mm256_mul_ps(y, _mm256_castsi256_ps(power)));
}

}  // namespace
}  // namespace foretoken::kernels::avx2
