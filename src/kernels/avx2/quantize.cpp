// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "kernels/avx2/functions.h"

namespace foretoken::kernels::avx2 {
namespace {

using tensor::kBlock;

// Compared as integers, magnitudes have the same order, and NaN and infinity are the largest.
float LargestMagnitude(__m256i v) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
  return __builtin_bit_cast(float, _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1))));
}

// {sum of the first 16 bytes, sum of all}. Of the bytes, which are bounded: numbers that are not
// finite were converted to the least 32-bit integer.
void StoreSums(__m256i bytes, std::int32_t* sums) {
  const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), bytes);
  const __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  const __m128i first = _mm256_castsi256_si128(fours);
  const __m128i all = _mm_add_epi32(first, _mm256_extracti128_si256(fours, 1));
  const __m128i halves = _mm_hadd_epi32(first, all);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(sums), _mm_hadd_epi32(halves, halves));
}

void QuantizeBlock(const float* x, std::int8_t* q, float* d, std::int32_t* sums) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  __m256i amax8 = _mm256_setzero_si256();
  for (int i = 0; i < 4; ++i)
    amax8 = _mm256_max_epi32(
        amax8, _mm256_castps_si256(_mm256_andnot_ps(sign, _mm256_loadu_ps(x + 8 * i))));
  float amax = LargestMagnitude(amax8);
  if (amax < 0x1p-100f) amax = 0;
  *d = amax / 127.0f;
  const __m256 id = _mm256_set1_ps(amax > 0 ? 127.0f / amax : 0.0f);
  __m256i v[4];
  for (int i = 0; i < 4; ++i)
    v[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), id));
  // Packing works within halves of 128 bits: words come out as 0 2 4 6 1 3 5 7.
  const __m256i packed =
      _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i bytes = _mm256_permutevar8x32_epi32(packed, order);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), bytes);
  StoreSums(bytes, sums);
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

}  // namespace foretoken::kernels::avx2
