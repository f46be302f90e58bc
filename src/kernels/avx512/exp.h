// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/exp.h: Exp of kernels/kernels.h for vectors of 16 values, for this folder only.
#pragma once

#include "kernels/avx512/lanes.h"

namespace foretoken::kernels::avx512 {
namespace {

// Several vectors in step: one alone is a chain of some 15 operations that each wait for the one
// before.
template <int kCount>
inline void Exp(__m512 (&x)[kCount]) {
  __mmask16 keep[kCount];
  __m512 shifted[kCount], r[kCount], y[kCount];
  const __m512 magic = _mm512_set1_ps(12582912.0f);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    keep[i] = _mm512_cmp_ps_mask(x[i], _mm512_set1_ps(-87.33654f), _CMP_NLT_UQ);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) x[i] = _mm512_min_ps(_mm512_set1_ps(88.37626f), x[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    shifted[i] = _mm512_fmadd_ps(x[i], _mm512_set1_ps(1.44269504f), magic);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) y[i] = _mm512_sub_ps(shifted[i], magic);  // n
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    r[i] = _mm512_fmadd_ps(y[i], _mm512_set1_ps(-0.693359375f), x[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    r[i] = _mm512_fmadd_ps(y[i], _mm512_set1_ps(2.12194440e-4f), r[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    y[i] =
        _mm512_fmadd_ps(_mm512_set1_ps(1.9875691500e-4f), r[i], _mm512_set1_ps(1.3981999507e-3f));
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    y[i] = _mm512_fmadd_ps(y[i], r[i], _mm512_set1_ps(8.3334519073e-3f));
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    y[i] = _mm512_fmadd_ps(y[i], r[i], _mm512_set1_ps(4.1665795894e-2f));
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    y[i] = _mm512_fmadd_ps(y[i], r[i], _mm512_set1_ps(1.6666665459e-1f));
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i)
    y[i] = _mm512_fmadd_ps(y[i], r[i], _mm512_set1_ps(5.0000001201e-1f));
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) y[i] = _mm512_fmadd_ps(y[i], _mm512_mul_ps(r[i], r[i]), r[i]);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) y[i] = _mm512_add_ps(y[i], _mm512_set1_ps(1.0f));
    // The low bits of `shifted` are the integer n; moved up they are an exponent.
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
    const __m512i n = _mm512_slli_epi32(_mm512_castps_si512(shifted[i]), 23);
    const __m512i power = _mm512_add_epi32(n, _mm512_set1_epi32(0x3f800000));
    x[i] = _mm512_maskz_mul_ps(keep[i], y[i], _mm512_castsi512_ps(power));
  }
}

inline __m512 Exp(__m512 x) {
  __m512 one[1] = {x};
  Exp(one);
  return one[0];
}

}  // namespace
}  // namespace foretoken::kernels::avx512
