// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/exp.h"
#include "kernels/avx512/functions.h"
#include "kernels/avx512/lanes.h"

namespace foretoken::kernels::avx512 {
namespace {

__m512 Gated(__m512 g, __m512 u) {
  const __m512 e = Exp(_mm512_xor_ps(g, _mm512_set1_ps(-0.0f)));
  return _mm512_mul_ps(_mm512_div_ps(g, _mm512_add_ps(_mm512_set1_ps(1.0f), e)), u);
}

}  // namespace

void SiluMul(const float* g, const float* u, int n, float* y) {
  const int whole = n - n % kLanes;
  for (int i = 0; i < whole; i += kLanes)
    _mm512_storeu_ps(y + i, Gated(_mm512_loadu_ps(g + i), _mm512_loadu_ps(u + i)));
  const __mmask16 rest = FirstLanes(n - whole);
  _mm512_mask_storeu_ps(
      y + whole, rest,
      Gated(_mm512_maskz_loadu_ps(rest, g + whole), _mm512_maskz_loadu_ps(rest, u + whole)));
}

}  // namespace foretoken::kernels::avx512
