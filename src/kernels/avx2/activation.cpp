// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/avx2/exp.h"
#include "kernels/avx2/functions.h"
#include "kernels/avx2/lanes.h"

namespace foretoken::kernels::avx2 {
namespace {

__m256 Gated(__m256 g, __m256 u) {
  const __m256 e = Exp(_mm256_xor_ps(g, _mm256_set1_ps(-0.0f)));
  return _mm256_mul_ps(_mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1.0f), e)), u);
}

}  // namespace

void SiluMul(const float* g, const float* u, int n, float* y) {
  const int whole = n - n % kHalf;
  for (int i = 0; i < whole; i += kHalf)
    _mm256_storeu_ps(y + i, Gated(_mm256_loadu_ps(g + i), _mm256_loadu_ps(u + i)));
  const __m256i rest = FirstLanes(n - whole);
  const __m256 last =
      Gated(_mm256_maskload_ps(g + whole, rest), _mm256_maskload_ps(u + whole, rest));
  _mm256_maskstore_ps(y + whole, rest, last);
}

}  // namespace foretoken::kernels::avx2
