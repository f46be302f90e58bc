// SPDX-License-Identifier: Apache-2.0
// kernels/neon/lanes.h: the 16 lanes of kernels/kernels.h in four vectors, and their fold, for this
// folder only.
#pragma once

#include <arm_neon.h>

#include <cstdint>

namespace foretoken::kernels::neon {
namespace {

constexpr int kLanes = 16;
constexpr int kWidth = 4;  // lanes of a vector
constexpr int kVectors = kLanes / kWidth;

constexpr std::uint32_t kMasks[2 * kWidth] = {~0u, ~0u, ~0u, ~0u};

// All bits of the first n lanes of a vector of 4; of all for n > 4, of none for n < 0.
inline uint32x4_t FirstLanes(int n) {
  n = n < 0 ? 0 : n > kWidth ? kWidth : n;
  return vld1q_u32(kMasks + kWidth - n);
}

inline float32x4_t Masked(float32x4_t x, uint32x4_t mask) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), mask));
}

// x where it is the larger one, else y: so also where one of them is NaN.
inline float32x4_t LargerOr(float32x4_t x, float32x4_t y) {
  return vbslq_f32(vcgtq_f32(x, y), x, y);
}

// 16 values.
struct Sixteen {
  float32x4_t v[kVectors];
};

inline Sixteen Load(const float* p) {
  return {{vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}};
}

// The first n of 16 values, n in [0, 16); `rest` in the place of the others.
inline Sixteen LoadFirst(const float* p, int n, float rest = 0.0f) {
  float all[kLanes];
  for (int i = 0; i < kLanes; ++i) all[i] = i < n ? p[i] : rest;
  return Load(all);
}

inline void Store(const Sixteen& x, float* p) {
  for (int t = 0; t < kVectors; ++t) vst1q_f32(p + t * kWidth, x.v[t]);
}

inline void StoreFirst(const Sixteen& x, int n, float* p) {
  float all[kLanes];
  Store(x, all);
  for (int i = 0; i < n; ++i) p[i] = all[i];
}

inline float FoldSum(const Sixteen& x) {
  const float32x4_t four = vaddq_f32(vaddq_f32(x.v[0], x.v[2]), vaddq_f32(x.v[1], x.v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

// 16 sums in double, two to a vector.
struct DoubleLanes {
  float64x2_t sum[kLanes / 2];

  DoubleLanes() {
    for (float64x2_t& s : sum) s = vdupq_n_f64(0.0);
  }
  void Add(const Sixteen& x) {
    for (int t = 0; t < kVectors; ++t) {
      sum[2 * t] = vaddq_f64(sum[2 * t], vcvt_f64_f32(vget_low_f32(x.v[t])));
      sum[2 * t + 1] = vaddq_f64(sum[2 * t + 1], vcvt_high_f64_f32(x.v[t]));
    }
  }
  double Fold() const {
    float64x2_t four[4], two[2];
    for (int i = 0; i < 4; ++i) four[i] = vaddq_f64(sum[i], sum[i + 4]);
    for (int i = 0; i < 2; ++i) two[i] = vaddq_f64(four[i], four[i + 2]);
    const float64x2_t one = vaddq_f64(two[0], two[1]);
    return vgetq_lane_f64(one, 0) + vgetq_lane_f64(one, 1);
  }
};

}  // namespace
}  // namespace foretoken::kernels::neon
