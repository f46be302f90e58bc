// SPDX-License-Identifier: Apache-2.0
// kernels/scalar/log.h: Log of kernels/kernels.h, for this folder only.
#pragma once

#include <cstdint>

namespace foretoken::kernels::scalar {
namespace {

// What Log takes from x: x = 2^n (1 + f), f in [-0.293, 0.4143).
struct LogParts {
  float n, f;
};

// For a negative x the result means nothing. The bits are unsigned, so that differences may wrap around.
inline LogParts PartsOf(float x) {
  const auto bits = __builtin_bit_cast(std::uint32_t, x);
  const std::int32_t exponent = __builtin_bit_cast(std::int32_t, bits - 0x3f3504f3u) >> 23;
  const float m = __builtin_bit_cast(float, bits - (static_cast<std::uint32_t>(exponent) << 23));
  return {static_cast<float>(exponent), m - 1.0f};
}

inline float LogOf(const LogParts& x) {
  const float n = x.n, f = x.f;
  float y = 7.0376836292e-2f;
  y = __builtin_fmaf(y, f, -1.1514610310e-1f);
  y = __builtin_fmaf(y, f, 1.1676998740e-1f);
  y = __builtin_fmaf(y, f, -1.2420140846e-1f);
  y = __builtin_fmaf(y, f, 1.4249322787e-1f);
  y = __builtin_fmaf(y, f, -1.6668057665e-1f);
  y = __builtin_fmaf(y, f, 2.0000714765e-1f);
  y = __builtin_fmaf(y, f, -2.4999993993e-1f);
  y = __builtin_fmaf(y, f, 3.3333331174e-1f);
  const float z = f * f;
  y = (y * f) * z;
  y = __builtin_fmaf(n, -2.12194440e-4f, y);
  y = __builtin_fmaf(-0.5f, z, y);
  return __builtin_fmaf(n, 0.693359375f, f + y);
}

inline float Log(float x) {
  return LogOf(PartsOf(x));
}

}  // namespace
}  // namespace foretoken::kernels::scalar
