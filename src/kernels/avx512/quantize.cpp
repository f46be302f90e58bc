// SPDX-License-Identifier: Apache-2.0
#pragma GCC diagnostic push  // false alarms of g++ 12 inside its own header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include "kernels/avx512/functions.h"

namespace foretoken::kernels::avx512 {
namespace {

using tensor::kBlock;

void QuantizeBlock(const float* x, std::int8_t* q, float* d, std::int32_t* sums) {
  const __m512 x0 = _mm512_loadu_ps(x), x1 = _mm512_loadu_ps(x + 16);
  // Compared as integers, magnitudes have the same order, and NaN and infinity are the largest.
  const __m512i magnitudes = _mm512_max_epi32(_mm512_castps_si512(_mm512_abs_ps(x0)),
                                              _mm512_castps_si512(_mm512_abs_ps(x1)));
  float amax = __builtin_bit_cast(float, _mm512_reduce_max_epi32(magnitudes));
  if (amax < 0x1p-100f) amax = 0;
  *d = amax / 127.0f;
  const __m512 id = _mm512_set1_ps(amax > 0 ? 127.0f / amax : 0.0f);
  const __m512i q0 = _mm512_cvtps_epi32(_mm512_mul_ps(x0, id));
  const __m512i q1 = _mm512_cvtps_epi32(_mm512_mul_ps(x1, id));
  const __m128i b0 = _mm512_cvtepi32_epi8(q0), b1 = _mm512_cvtepi32_epi8(q1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), b0);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16), b1);
  // {sum of b0, sum of both}: products with one, then two steps of pairs.
  const __m128i ones = _mm_set1_epi8(1);
  const __m128i s0 = _mm_dpbusd_epi32(_mm_setzero_si128(), ones, b0);
  const __m128i pairs = _mm_hadd_epi32(s0, _mm_dpbusd_epi32(s0, ones, b1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(sums), _mm_hadd_epi32(pairs, pairs));
}

}  // namespace

void Quantize(const float* x, std::int64_t x_stride, int n_rows, int k, std::int8_t* xq, float* xd,
              std::int32_t* xs) {
  for (int row = 0; row < n_rows; ++row) {
    for (int i = 0; i < k; i += kBlock) {
      QuantizeBlock(x + row * x_stride + i, xq, xd++, xs);
      xq += kBlock;
      xs += 2;
    }
  }
}

}  // namespace foretoken::kernels::avx512
