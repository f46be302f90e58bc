// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/functions.h"
#include "kernels/avx512/lanes.h"

namespace foretoken::kernels::avx512 {

void RmsNorm(const float* x, const float* weight, int n, float eps, float* y) {
  const int whole = n - n % kLanes;
  const __mmask16 rest = FirstLanes(n - whole);
  __m512 lanes = _mm512_setzero_ps();
  for (int i = 0; i < whole; i += kLanes) {
    const __m512 v = _mm512_loadu_ps(x + i);
    lanes = _mm512_fmadd_ps(v, v, lanes);
  }
  const __m512 last = _mm512_maskz_loadu_ps(rest, x + whole);
  lanes = _mm512_fmadd_ps(last, last, lanes);  // zeros leave a lane as it is
  const float factor = 1.0f / __builtin_sqrtf(FoldSum(lanes) / static_cast<float>(n) + eps);

  const __m512 f = _mm512_set1_ps(factor);
  for (int i = 0; i < whole; i += kLanes) {
    const __m512 scaled = _mm512_mul_ps(_mm512_loadu_ps(x + i), f);
    _mm512_storeu_ps(y + i, _mm512_mul_ps(scaled, _mm512_loadu_ps(weight + i)));
  }
  const __m512 w = _mm512_maskz_loadu_ps(rest, weight + whole);
  _mm512_mask_storeu_ps(y + whole, rest, _mm512_mul_ps(_mm512_mul_ps(last, f), w));
}

}  // namespace foretoken::kernels::avx512
