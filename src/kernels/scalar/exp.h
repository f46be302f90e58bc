// SPDX-License-Identifier: Apache-2.0
// kernels/scalar/exp.h: Exp of kernels/kernels.h and the fold of lanes, for this folder only. It
// uses builtins, because the functions of <cmath> are inline and would leave weak symbols.
#pragma once

#include <cstddef>
#include <cstdint>

namespace foretoken::kernels::scalar {
namespace {

constexpr int kLanes = 16;

inline float Exp(float x) {
  if (x < -87.33654f) return 0.0f;
  x = 88.37626f < x ? 88.37626f : x;
  constexpr float kMagic = 12582912.0f;
  const float shifted = __builtin_fmaf(x, 1.44269504f, kMagic);
  const float n = shifted - kMagic;
  float r = __builtin_fmaf(n, -0.693359375f, x);
  r = __builtin_fmaf(n, 2.12194440e-4f, r);
  float y = 1.9875691500e-4f;
  y = __builtin_fmaf(y, r, 1.3981999507e-3f);
  y = __builtin_fmaf(y, r, 8.3334519073e-3f);
  y = __builtin_fmaf(y, r, 4.1665795894e-2f);
  y = __builtin_fmaf(y, r, 1.6666665459e-1f);
  y = __builtin_fmaf(y, r, 5.0000001201e-1f);
  y = __builtin_fmaf(y, r * r, r) + 1.0f;
  // The low bits of `shifted` are the integer n; moved up they are an exponent.
  const std::uint32_t power = (__builtin_bit_cast(std::uint32_t, shifted) << 23) + 0x3f800000u;
  return y * __builtin_bit_cast(float, power);
}

// ROUGH EXP of kernels.h.
inline float RoughExp(float x) {
  x = -86.0f > x ? -86.0f : x;
  constexpr float kMagic = 12583039.0f;
  const float shifted = __builtin_fmaf(x, 1.44269504f, kMagic);
  const float r = __builtin_fmaf(x, 1.44269504f, kMagic - shifted);
  float y = __builtin_fmaf(r, 0.055008866f, 0.24221097f);
  y = __builtin_fmaf(y, r, 0.69328296f);
  y = __builtin_fmaf(y, r, 1.0f);
  // The low bits of `shifted` are the integer n + 127; moved up they are the exponent of 2^n.
  return y * __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, shifted) << 23);
}

template <class T>
T FoldLanes(T* lanes) {
#pragma GCC unroll 4
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  return lanes[0];
}

}  // namespace
}  // namespace foretoken::kernels::scalar
