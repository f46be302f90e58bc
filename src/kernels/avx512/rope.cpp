// SPDX-License-Identifier: Apache-2.0
#include "kernels/avx512/functions.h"
#include "kernels/avx512/lanes.h"

namespace foretoken::kernels::avx512 {
namespace {

struct Pairs {
  __m512 a, b;
};

Pairs Rotate(Pairs x, __m512 c, __m512 s) {
  // fmsub(a, c, t) is fma(a, c, -t).
  return {_mm512_fmsub_ps(x.a, c, _mm512_mul_ps(x.b, s)),
          _mm512_fmadd_ps(x.a, s, _mm512_mul_ps(x.b, c))};
}

// n pairs from `pair` on, n in [1, 16].
void RotateSplit(float* a, float* b, int n, const float* c, const float* s) {
  const __mmask16 mask = FirstLanes(n);
  const Pairs x = {_mm512_maskz_loadu_ps(mask, a), _mm512_maskz_loadu_ps(mask, b)};
  const Pairs y = Rotate(x, _mm512_maskz_loadu_ps(mask, c), _mm512_maskz_loadu_ps(mask, s));
  _mm512_mask_storeu_ps(a, mask, y.a);
  _mm512_mask_storeu_ps(b, mask, y.b);
}

void RotateInterleaved(float* x, int n, const float* c, const float* s) {
  const __mmask16 mask = FirstLanes(n);
  const int n_high = n > 8 ? 2 * n - kLanes : 0;
  const __mmask16 low = FirstLanes(2 * n - n_high), high = FirstLanes(n_high);
  const __m512 v0 = _mm512_maskz_loadu_ps(low, x);
  const __m512 v1 = _mm512_maskz_loadu_ps(high, x + kLanes);
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  const Pairs pairs = {_mm512_permutex2var_ps(v0, even, v1), _mm512_permutex2var_ps(v0, odd, v1)};
  const Pairs y = Rotate(pairs, _mm512_maskz_loadu_ps(mask, c), _mm512_maskz_loadu_ps(mask, s));
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i second =
      _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  _mm512_mask_storeu_ps(x, low, _mm512_permutex2var_ps(y.a, first, y.b));
  _mm512_mask_storeu_ps(x + kLanes, high, _mm512_permutex2var_ps(y.a, second, y.b));
}

}  // namespace

void Rope(float* x, int n_heads, int head_dim, int n_rot, bool interleaved, const float* c,
          const float* s) {
  const int half = n_rot / 2;
  for (int h = 0; h < n_heads; ++h) {
    float* head = x + static_cast<std::ptrdiff_t>(h) * head_dim;
    for (int i = 0; i < half; i += kLanes) {
      const int n = half - i < kLanes ? half - i : kLanes;
      if (interleaved)
        RotateInterleaved(head + 2 * i, n, c + i, s + i);
      else
        RotateSplit(head + i, head + half + i, n, c + i, s + i);
    }
  }
}

}  // namespace foretoken::kernels::avx512
