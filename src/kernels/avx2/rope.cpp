// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/avx2/functions.h"
#include "kernels/avx2/lanes.h"

namespace foretoken::kernels::avx2 {
namespace {

struct Pairs {
  __m256 a, b;
};

Pairs Rotate(Pairs x, __m256 c, __m256 s) {
  // fmsub(a, c, t) is fma(a, c, -t).
  return {_mm256_fmsub_ps(x.a, c, _mm256_mul_ps(x.b, s)),
          _mm256_fmadd_ps(x.a, s, _mm256_mul_ps(x.b, c))};
}

// n pairs, n in [1, 8].
void RotateSplit(float* a, float* b, int n, const float* c, const float* s) {
  const __m256i mask = FirstLanes(n);
  const Pairs x = {_mm256_maskload_ps(a, mask), _mm256_maskload_ps(b, mask)};
  const Pairs y = Rotate(x, _mm256_maskload_ps(c, mask), _mm256_maskload_ps(s, mask));
  _mm256_maskstore_ps(a, mask, y.a);
  _mm256_maskstore_ps(b, mask, y.b);
}

// The pairs lie in the order 0 1 4 5 2 3 6 7 between the shuffles, which work within halves; so do
// c and s then.
void RotateInterleaved(float* x, int n, const float* c, const float* s) {
  const __m256i low = FirstLanes(2 * n), high = FirstLanes(2 * n - kHalf), mask = FirstLanes(n);
  const __m256 v0 = _mm256_maskload_ps(x, low), v1 = _mm256_maskload_ps(x + kHalf, high);
  const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
  const __m256 cs = _mm256_permutevar8x32_ps(_mm256_maskload_ps(c, mask), order);
  const __m256 sn = _mm256_permutevar8x32_ps(_mm256_maskload_ps(s, mask), order);
  const Pairs y =
      Rotate({_mm256_shuffle_ps(v0, v1, 0x88), _mm256_shuffle_ps(v0, v1, 0xdd)}, cs, sn);
  _mm256_maskstore_ps(x, low, _mm256_unpacklo_ps(y.a, y.b));
  _mm256_maskstore_ps(x + kHalf, high, _mm256_unpackhi_ps(y.a, y.b));
}

}  // namespace

void Rope(float* x, int n_heads, int head_dim, int n_rot, bool interleaved, const float* c,
          const float* s) {
  const int half = n_rot / 2;
  for (int h = 0; h < n_heads; ++h) {
    float* head = x + static_cast<std::ptrdiff_t>(h) * head_dim;
    for (int i = 0; i < half; i += kHalf) {
      const int n = half - i < kHalf ? half - i : kHalf;
      if (interleaved)
        RotateInterleaved(head + 2 * i, n, c + i, s + i);
      else
        RotateSplit(head + i, head + half + i, n, c + i, s + i);
    }
  }
}

}  // namespace foretoken::kernels::avx2
