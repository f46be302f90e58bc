// SPDX-License-Identifier: Apache-2.0
#include <arm_neon.h>

#include "kernels/neon/functions.h"

namespace foretoken::kernels::neon {
namespace {

using tensor::kBlock;

constexpr int kVectors = kBlock / 4;

float LargestMagnitude(const float* x) {
  float32x4_t amax = vdupq_n_f32(0.0f);
  for (int i = 0; i < kVectors; ++i) amax = vmaxq_f32(amax, vabsq_f32(vld1q_f32(x + 4 * i)));
  return vmaxvq_f32(amax);
}

void QuantizeBlock(const float* x, std::int8_t* q, float* d, std::int32_t* sums) {
  float amax = LargestMagnitude(x);
  if (amax < 0x1p-100f) amax = 0;
  *d = amax / 127.0f;
  const float id = amax > 0 ? 127.0f / amax : 0.0f;
  int8x16_t half[2];
  for (int h = 0; h < 2; ++h) {
    int32x4_t v[4];
    for (int i = 0; i < 4; ++i)
      v[i] = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 16 * h + 4 * i), id));
    const int16x8_t low = vcombine_s16(vmovn_s32(v[0]), vmovn_s32(v[1]));
    const int16x8_t high = vcombine_s16(vmovn_s32(v[2]), vmovn_s32(v[3]));
    half[h] = vcombine_s8(vmovn_s16(low), vmovn_s16(high));
    vst1q_s8(q + 16 * h, half[h]);
  }
  sums[0] = vaddlvq_s8(half[0]);
  sums[1] = sums[0] + vaddlvq_s8(half[1]);
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

}  // namespace foretoken::kernels::neon
