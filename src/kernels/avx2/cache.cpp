// SPDX-License-Identifier: Apache-2.0
// 8 dimensions at a time: head_dim is a multiple of 8, and what a position writes is short.
#include <immintrin.h>

#include "kernels/avx2/functions.h"
#include "kernels/avx2/lanes.h"

namespace foretoken::kernels::avx2 {
namespace {

constexpr int kSlots = tensor::kKvBlock;
constexpr int kGroup = tensor::kBlock;  // dimensions that share a scale
constexpr int kStep = 8;

__m128i ToHalf(__m256 x) {
  return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

__m128i ToBfloat(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i high = _mm256_srli_epi32(bits, 16);
  const __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
  const __m256i rounding = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
  const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, rounding), 16);
  const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  const __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
  const __m256i chosen = _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(nan));
  return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
}

template <__m128i (*Convert)(__m256)>
void StoreColumn(const float* x, int head_dim, int slot, void* block) {
  auto* column = static_cast<std::uint16_t*>(block) + slot;
  for (int d = 0; d < head_dim; d += kStep) {
    alignas(16) std::uint16_t converted[kStep];
    _mm_store_si128(reinterpret_cast<__m128i*>(converted), Convert(_mm256_loadu_ps(x + d)));
    for (int i = 0; i < kStep; ++i) column[(d + i) * kSlots] = converted[i];
  }
}

template <__m128i (*Convert)(__m256)>
void StoreRow(const float* x, int head_dim, int slot, void* block) {
  auto* row = static_cast<std::uint16_t*>(block) + slot * head_dim;
  for (int d = 0; d < head_dim; d += kStep)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row + d), Convert(_mm256_loadu_ps(x + d)));
}

// 8 values to int8, in the lower half.
__m128i Quantized(__m256 x, __m256 d) {
  __m256i q = _mm256_cvtps_epi32(_mm256_div_ps(x, d));
  q = _mm256_min_epi32(q, _mm256_set1_epi32(127));
  q = _mm256_max_epi32(q, _mm256_set1_epi32(-127));
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
  return _mm_packs_epi16(words, words);
}

// 32 values to q; returns the scale.
std::uint16_t QuantizeGroup(const float* x, std::int8_t* q) {
  const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  __m256i largest = _mm256_setzero_si256();  // compared as integers, so that NaN is the largest
  for (int i = 0; i < kGroup; i += kStep)
    largest = _mm256_max_epi32(
        largest, _mm256_castps_si256(_mm256_and_ps(_mm256_loadu_ps(x + i), magnitude)));
  __m128i four =
      _mm_max_epi32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  const float amax = __builtin_bit_cast(
      float, _mm_cvtsi128_si32(_mm_max_epi32(four, _mm_shuffle_epi32(four, 0xb1))));
  const std::uint16_t scale =
      _cvtss_sh(amax / 127.0f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const float d = _cvtsh_ss(scale);
  for (int i = 0; i < kGroup; i += kStep) {
    const __m128i values =
        d == 0.0f ? _mm_setzero_si128() : Quantized(_mm256_loadu_ps(x + i), _mm256_set1_ps(d));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(q + i), values);
  }
  return scale;
}

std::uint16_t* Scales(void* block, int head_dim) {
  return reinterpret_cast<std::uint16_t*>(static_cast<std::int8_t*>(block) + kSlots * head_dim);
}

}  // namespace

void StoreKF32(const float* x, int head_dim, int slot, void* block) {
  auto* column = static_cast<float*>(block) + slot;
  for (int d = 0; d < head_dim; ++d) column[d * kSlots] = x[d];
}
void StoreKF16(const float* x, int head_dim, int slot, void* block) {
  StoreColumn<ToHalf>(x, head_dim, slot, block);
}
void StoreKBF16(const float* x, int head_dim, int slot, void* block) {
  StoreColumn<ToBfloat>(x, head_dim, slot, block);
}
void StoreVF32(const float* x, int head_dim, int slot, void* block) {
  float* row = static_cast<float*>(block) + slot * head_dim;
  for (int d = 0; d < head_dim; d += kStep) _mm256_storeu_ps(row + d, _mm256_loadu_ps(x + d));
}
void StoreVF16(const float* x, int head_dim, int slot, void* block) {
  StoreRow<ToHalf>(x, head_dim, slot, block);
}
void StoreVBF16(const float* x, int head_dim, int slot, void* block) {
  StoreRow<ToBfloat>(x, head_dim, slot, block);
}

void StoreKQ8_0(const float* x, int head_dim, int slot, void* block) {
  std::int8_t* column = static_cast<std::int8_t*>(block) + slot;
  std::uint16_t* scales = Scales(block, head_dim) + slot;
  for (int d = 0; d < head_dim; d += kGroup) {
    std::int8_t q[kGroup];
    scales[d / kGroup * kSlots] = QuantizeGroup(x + d, q);
    for (int i = 0; i < kGroup; ++i) column[(d + i) * kSlots] = q[i];
  }
}

void StoreVQ8_0(const float* x, int head_dim, int slot, void* block) {
  std::int8_t* row = static_cast<std::int8_t*>(block) + slot * head_dim;
  std::uint16_t* scales = Scales(block, head_dim) + slot * (head_dim / kGroup);
  for (int d = 0; d < head_dim; d += kGroup) scales[d / kGroup] = QuantizeGroup(x + d, row + d);
}

}  // namespace foretoken::kernels::avx2
