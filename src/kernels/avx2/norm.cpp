// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/avx2/functions.h"
#include "kernels/avx2/lanes.h"

namespace foretoken::kernels::avx2 {

void RmsNorm(const float* x, const float* weight, int n, float eps, float* y) {
  const int whole = n - n % kLanes;
  __m256 low = _mm256_setzero_ps(), high = _mm256_setzero_ps();
  for (int i = 0; i < whole; i += kLanes) {
    const __m256 v0 = _mm256_loadu_ps(x + i), v1 = _mm256_loadu_ps(x + i + kHalf);
    low = _mm256_fmadd_ps(v0, v0, low);
    high = _mm256_fmadd_ps(v1, v1, high);
  }
  // Zeros beyond n leave a lane as it is.
  const __m256 v0 = _mm256_maskload_ps(x + whole, FirstLanes(n - whole));
  const __m256 v1 = _mm256_maskload_ps(x + whole + kHalf, FirstLanes(n - whole - kHalf));
  low = _mm256_fmadd_ps(v0, v0, low);
  high = _mm256_fmadd_ps(v1, v1, high);
  const float factor = 1.0f / __builtin_sqrtf(FoldSum(low, high) / static_cast<float>(n) + eps);

  const __m256 f = _mm256_set1_ps(factor);
  const int vectors = n - n % kHalf;
  for (int i = 0; i < vectors; i += kHalf) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), f);
    _mm256_storeu_ps(y + i, _mm256_mul_ps(scaled, _mm256_loadu_ps(weight + i)));
  }
  const __m256i rest = FirstLanes(n - vectors);
  const __m256 scaled = _mm256_mul_ps(_mm256_maskload_ps(x + vectors, rest), f);
  _mm256_maskstore_ps(y + vectors, rest,
                      _mm256_mul_ps(scaled, _mm256_maskload_ps(weight + vectors, rest)));
}

}  // namespace foretoken::kernels::avx2
