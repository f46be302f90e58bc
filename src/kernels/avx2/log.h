// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/log.h: Log of kernels/kernels.h for vectors of 8 values, for this folder only.
#pragma once

#include <immintrin.h>

namespace foretoken::kernels::avx2 {
namespace {

// What Log takes from x: x = 2^n (1 + f), f in [-0.293, 0.4143).
struct LogParts {
  __m256 n, f;
};

inline LogParts PartsOf(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i exponent =
      _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f3504f3)), 23);
  const __m256 m = _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(exponent, 23)));
  const __m256 f = _mm256_sub_ps(m, _mm256_set1_ps(1.0f));
  const __m256 n = _mm256_cvtepi32_ps(exponent);
  return {n, f};
}

inline __m256 LogOf(const LogParts& x) {
  const __m256 n = x.n, f = x.f;
  __m256 y = _mm256_set1_ps(7.0376836292e-2f);
  y = _mm256_fmadd_ps(y, f, _mm256_set1_ps(-1.1514610310e-1f));
  y = _mm256_fmadd_ps(y, f, _mm256_set1_ps(1.1676998740e-1f));
  y = _mm256_fmadd_ps(y, f, _mm256_set1_ps(-1.2420140846e-1f));
  y = _mm256_fmadd_ps(y, f, _mm256_set1_ps(1.4249322787e-1f));
  y = _mm256_fmadd_ps(y, f, _mm256_set1_ps(-1.6668057665e-1f));
  y = _mm256_fmadd_ps(y, f, _mm256_set1_ps(2.0000714765e-1f));
  y = _mm256_fmadd_ps(y, f, _mm256_set1_ps(-2.4999993993e-1f));
  y = _mm256_fmadd_ps(y, f, _mm256_set1_ps(3.3333331174e-1f));
  const __m256 z = _mm256_mul_ps(f, f);
  y = _mm256_mul_ps(_mm256_mul_ps(y, f), z);
  y = _mm256_fmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), y);
  y = _mm256_fmadd_ps(_mm256_set1_ps(-0.5f), z, y);
  return _mm256_fmadd_ps(n, _mm256_set1_ps(0.693359375f), _mm256_add_ps(f, y));
}

inline __m256 Log(__m256 x) {
  return LogOf(PartsOf(x));
}

// x * Log(x); 0 where x is not at least 2^-126.
inline __m256 TimesLog(__m256 x) {
  const __m256 counts = _mm256_cmp_ps(x, _mm256_set1_ps(0x1p-126f), _CMP_GE_OQ);
  return _mm256_and_ps(counts, _mm256_mul_ps(x, Log(x)));
}

}  // namespace
}  // namespace foretoken::kernels::avx2
