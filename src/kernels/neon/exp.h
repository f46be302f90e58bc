// SPDX-License-Identifier: Apache-2.0
// kernels/neon/exp.h: Exp of kernels/kernels.h for vectors of 4 values, for this folder only.
#pragma once

#include <arm_neon.h>

namespace foretoken::kernels::neon {
namespace {

// x = x * y + constant, for each of several vectors.
template <int kCount>
inline void Step(float32x4_t (&x)[kCount], const float32x4_t (&y)[kCount], float constant) {
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) x[i] = vfmaq_f32(vdupq_n_f32(constant), x[i], y[i]);
}

// Several vectors in step: one alone is a chain of some 15 operations that each wait for the one
// before.
template <int kCount>
inline void Exp(float32x4_t (&x)[kCount]) {
  uint32x4_t zero[kCount];
  float32x4_t shifted[kCount], r[kCount], y[kCount];
  const float32x4_t magic = vdupq_n_f32(12582912.0f);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
    zero[i] = vcltq_f32(x[i], vdupq_n_f32(-87.33654f));
    x[i] = vminq_f32(x[i], vdupq_n_f32(88.37626f));
    shifted[i] = vfmaq_f32(magic, x[i], vdupq_n_f32(1.44269504f));
    const float32x4_t n = vsubq_f32(shifted[i], magic);
    r[i] = vfmaq_f32(x[i], n, vdupq_n_f32(-0.693359375f));
    r[i] = vfmaq_f32(r[i], n, vdupq_n_f32(2.12194440e-4f));
    y[i] = vdupq_n_f32(1.9875691500e-4f);
  }
  Step(y, r, 1.3981999507e-3f);
  Step(y, r, 8.3334519073e-3f);
  Step(y, r, 4.1665795894e-2f);
  Step(y, r, 1.6666665459e-1f);
  Step(y, r, 5.0000001201e-1f);
#pragma GCC unroll 4
  for (int i = 0; i < kCount; ++i) {
    y[i] = vaddq_f32(vfmaq_f32(r[i], y[i], vmulq_f32(r[i], r[i])), vdupq_n_f32(1.0f));
    // The low bits of `shifted` are the integer n; moved up they are an exponent.
    const uint32x4_t n = vshlq_n_u32(vreinterpretq_u32_f32(shifted[i]), 23);
    const uint32x4_t power = vaddq_u32(n, vdupq_n_u32(0x3f800000));
    const float32x4_t result = vmulq_f32(y[i], vreinterpretq_f32_u32(power));
    x[i] = vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(result), zero[i]));
  }
}

}  // namespace
}  // namespace foretoken::kernels::neon
