// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/log.h: Log of kernels/kernels.h for vectors of 16 values, for this folder only.
#pragma once

#include "kernels/avx512/lanes.h"

namespace foretoken::kernels::avx512 {
namespace {

// What Log takes from x: x = 2^n (1 + f), f in [-0.293, 0.4143).
struct LogParts {
  __m512 n, f;
};

inline LogParts PartsOf(__m512 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i exponent =
      _mm512_srai_epi32(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3f3504f3)), 23);
  const __m512 m = _mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_slli_epi32(exponent, 23)));
  const __m512 f = _mm512_sub_ps(m, _mm512_set1_ps(1.0f));
  const __m512 n = _mm512_cvtepi32_ps(exponent);
  return {n, f};
}

inline __m512 LogOf(const LogParts& x) {
  const __m512 n = x.n, f = x.f;
  __m512 y = _mm512_set1_ps(7.0376836292e-2f);
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(-1.1514610310e-1f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(1.1676998740e-1f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(-1.2420140846e-1f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(1.4249322787e-1f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(-1.6668057665e-1f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(2.0000714765e-1f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(-2.4999993993e-1f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(3.3333331174e-1f));
  const __m512 z = _mm512_mul_ps(f, f);
  y = _mm512_mul_ps(_mm512_mul_ps(y, f), z);
  y = _mm512_fmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), y);
  y = _mm512_fmadd_ps(_mm512_set1_ps(-0.5f), z, y);
  return _mm512_fmadd_ps(n, _mm512_set1_ps(0.693359375f), _mm512_add_ps(f, y));
}

inline __m512 Log(__m512 x) {
  return LogOf(PartsOf(x));
}

// x * Log(x); 0 where x is not at least 2^-126.
inline __m512 TimesLog(__m512 x) {
  const __mmask16 counts = _mm512_cmp_ps_mask(x, _mm512_set1_ps(0x1p-126f), _CMP_GE_OQ);
  return _mm512_maskz_mul_ps(counts, x, Log(x));
}

}  // namespace
}  // namespace foretoken::kernels::avx512
