// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/exp.h: Exp of kernels/kernels.h for 16 values, for this folder only.
#pragma once

#include "kernels/avx512/lanes.h"

namespace foretoken::kernels::avx512 {
namespace {

inline __m512 Exp(__m512 x) {
  const __mmask16 keep = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.33654f), _CMP_NLT_UQ);
  x = _mm512_min_ps(_mm512_set1_ps(88.37626f), x);
  const __m512 magic = _mm512_set1_ps(12582912.0f);
  const __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(1.44269504f), magic);
  const __m512 n = _mm512_sub_ps(shifted, magic);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0.693359375f), x);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), r);
  __m512 y = _mm512_set1_ps(1.9875691500e-4f);
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.3981999507e-3f));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(8.3334519073e-3f));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(4.1665795894e-2f));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.6666665459e-1f));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(5.0000001201e-1f));
  y = _mm512_add_ps(_mm512_fmadd_ps(y, _mm512_mul_ps(r, r), r), _mm512_set1_ps(1.0f));
  // The low bits of `shifted` are the integer n; moved up they are an exponent.
  const __m512i power = _mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23),
                                         _mm512_set1_epi32(0x3f800000));
  return _mm512_maskz_mul_ps(keep, y, _mm512_castsi512_ps(power));
}

}  // namespace
}  // namespace foretoken::kernels::avx512
