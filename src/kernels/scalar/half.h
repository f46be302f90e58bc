// SPDX-License-Identifier: Apache-2.0
// kernels/scalar/half.h: IEEE half and bfloat16 for this folder only. tensor/half.cpp has the same
// conversions, with comments; the folders of kernels link against nothing.
#pragma once

#include <cstdint>

namespace foretoken::kernels::scalar {
namespace {

inline std::uint32_t Bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
inline float FromBits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

inline float HalfToFloat(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t magnitude = half & 0x7fff;
  if (magnitude < 0x400) return FromBits(sign | Bits(static_cast<float>(magnitude) * 0x1p-24f));
  if (magnitude >= 0x7c00) {
    const std::uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
    return FromBits(sign | 0x7f800000 | quiet | magnitude << 13);
  }
  return FromBits(sign | ((magnitude << 13) + (112u << 23)));
}

inline std::uint16_t FloatToHalf(float x) {
  const std::uint32_t sign = (Bits(x) >> 16) & 0x8000;
  const std::uint32_t magnitude = Bits(x) & 0x7fffffff;
  std::uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  } else if (magnitude >= 0x477ff000) {
    half = 0x7c00;
  } else if (magnitude >= 0x38800000) {
    half = (magnitude + 0xfff + ((magnitude >> 13) & 1) - (112u << 23)) >> 13;
  } else {
    half = Bits(FromBits(magnitude) + 0.5f) - 0x3f000000;
  }
  return static_cast<std::uint16_t>(sign | half);
}

inline float BfloatToFloat(std::uint16_t bits) {
  return FromBits(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t FloatToBfloat(float x) {
  const std::uint32_t bits = Bits(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

}  // namespace
}  // namespace foretoken::kernels::scalar
