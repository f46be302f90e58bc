// SPDX-License-Identifier: Apache-2.0
// 8 dimensions at a time: head_dim is a multiple of 8, and what a position writes is short.
#include "kernels/neon/functions.h"
#include "kernels/neon/lanes.h"

namespace foretoken::kernels::neon {
namespace {

constexpr int kSlots = tensor::kKvBlock;
constexpr int kGroup = tensor::kBlock;  // dimensions that share a scale
constexpr int kStep = 8;

uint16x4_t ToHalf(float32x4_t x) {
  return vreinterpret_u16_f16(vcvt_f16_f32(x));
}

uint16x4_t ToBfloat(float32x4_t x) {
  const uint32x4_t bits = vreinterpretq_u32_f32(x);
  const uint32x4_t high = vshrq_n_u32(bits, 16);
  const uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
  const uint32x4_t rounding = vaddq_u32(odd, vdupq_n_u32(0x7fff));
  const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(bits, rounding), 16);
  const uint32x4_t quiet = vorrq_u32(high, vdupq_n_u32(0x40));
  return vmovn_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet));
}

template <uint16x4_t (*Convert)(float32x4_t)>
uint16x8_t Eight(const float* x) {
  return vcombine_u16(Convert(vld1q_f32(x)), Convert(vld1q_f32(x + 4)));
}

template <uint16x4_t (*Convert)(float32x4_t)>
void StoreColumn(const float* x, int head_dim, int slot, void* block) {
  auto* column = static_cast<std::uint16_t*>(block) + slot;
  for (int d = 0; d < head_dim; d += kStep) {
    std::uint16_t converted[kStep];
    vst1q_u16(converted, Eight<Convert>(x + d));
    for (int i = 0; i < kStep; ++i) column[(d + i) * kSlots] = converted[i];
  }
}

template <uint16x4_t (*Convert)(float32x4_t)>
void StoreRow(const float* x, int head_dim, int slot, void* block) {
  auto* row = static_cast<std::uint16_t*>(block) + slot * head_dim;
  for (int d = 0; d < head_dim; d += kStep) vst1q_u16(row + d, Eight<Convert>(x + d));
}

int16x4_t Quantized(float32x4_t x, float32x4_t d) {
  const float32x4_t ratio = vdivq_f32(x, d);
  const float32x4_t bounded =
      vmaxq_f32(vminq_f32(ratio, vdupq_n_f32(127.0f)), vdupq_n_f32(-127.0f));
  return vmovn_s32(vcvtnq_s32_f32(bounded));
}

// 32 values to q; returns the scale.
std::uint16_t QuantizeGroup(const float* x, std::int8_t* q) {
  float32x4_t largest = vdupq_n_f32(0.0f);
  for (int i = 0; i < kGroup; i += kWidth) largest = LargerOr(vabsq_f32(vld1q_f32(x + i)), largest);
  const float16x4_t scale = vcvt_f16_f32(vdupq_n_f32(vmaxvq_f32(largest) / 127.0f));
  const float32x4_t d = vcvt_f32_f16(scale);
  const bool zero = vgetq_lane_f32(d, 0) == 0.0f;
  for (int i = 0; i < kGroup; i += kStep) {
    const int16x8_t words =
        vcombine_s16(Quantized(vld1q_f32(x + i), d), Quantized(vld1q_f32(x + i + kWidth), d));
    vst1_s8(q + i, zero ? vdup_n_s8(0) : vmovn_s16(words));
  }
  return vget_lane_u16(vreinterpret_u16_f16(scale), 0);
}

std::uint16_t* Scales(void* block, int head_dim) {
  return reinterpret_cast<std::uint16_t*>(static_cast<std::byte*>(block) + kSlots * head_dim);
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
  for (int d = 0; d < head_dim; d += kWidth) vst1q_f32(row + d, vld1q_f32(x + d));
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

}  // namespace foretoken::kernels::neon
