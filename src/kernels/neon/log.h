// SPDX-License-Identifier: Apache-2.0
// kernels/neon/log.h: Log of kernels/kernels.h for vectors of 4 values, for this folder only.
#pragma once

#include <arm_neon.h>

namespace foretoken::kernels::neon {
namespace {

// What Log takes from x: x = 2^n (1 + f), f in [-0.293, 0.4143).
struct LogParts {
  float32x4_t n, f;
};

inline LogParts PartsOf(float32x4_t x) {
  const int32x4_t bits = vreinterpretq_s32_f32(x);
  const int32x4_t exponent = vshrq_n_s32(vsubq_s32(bits, vdupq_n_s32(0x3f3504f3)), 23);
  const float32x4_t m = vreinterpretq_f32_s32(vsubq_s32(bits, vshlq_n_s32(exponent, 23)));
  const float32x4_t f = vsubq_f32(m, vdupq_n_f32(1.0f));
  const float32x4_t n = vcvtq_f32_s32(exponent);
  return {n, f};
}

inline float32x4_t LogOf(const LogParts& x) {
  const float32x4_t n = x.n, f = x.f;
  float32x4_t y = vdupq_n_f32(7.0376836292e-2f);
  y = vfmaq_f32(vdupq_n_f32(-1.1514610310e-1f), y, f);
  y = vfmaq_f32(vdupq_n_f32(1.1676998740e-1f), y, f);
  y = vfmaq_f32(vdupq_n_f32(-1.2420140846e-1f), y, f);
  y = vfmaq_f32(vdupq_n_f32(1.4249322787e-1f), y, f);
  y = vfmaq_f32(vdupq_n_f32(-1.6668057665e-1f), y, f);
  y = vfmaq_f32(vdupq_n_f32(2.0000714765e-1f), y, f);
  y = vfmaq_f32(vdupq_n_f32(-2.4999993993e-1f), y, f);
  y = vfmaq_f32(vdupq_n_f32(3.3333331174e-1f), y, f);
  const float32x4_t z = vmulq_f32(f, f);
  y = vmulq_f32(vmulq_f32(y, f), z);
  y = vfmaq_f32(y, n, vdupq_n_f32(-2.12194440e-4f));
  y = vfmaq_f32(y, vdupq_n_f32(-0.5f), z);
  return vfmaq_f32(vaddq_f32(f, y), n, vdupq_n_f32(0.693359375f));
}

inline float32x4_t Log(float32x4_t x) {
  return LogOf(PartsOf(x));
}

// x * Log(x); 0 where x is not at least 2^-126.
inline float32x4_t TimesLog(float32x4_t x) {
  const uint32x4_t counts = vcgeq_f32(x, vdupq_n_f32(0x1p-126f));
  const float32x4_t product = vmulq_f32(x, Log(x));
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(product), counts));
}

}  // namespace
}  // namespace foretoken::kernels::neon
