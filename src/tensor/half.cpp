// SPDX-License-Identifier: Apache-2.0
// An IEEE half has 1 sign bit, 5 bits of exponent (bias 15) and 10 bits of mantissa. A bfloat16 is
// the upper half of an f32.
#include <bit>

#include "tensor/dtype.h"

namespace foretoken::tensor {

float F16ToF32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1f;
  const std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {  // zero and subnormals: mantissa * 2^-24, exact
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 0x1f) {  // infinity, or a NaN, which becomes quiet as on processors
    const std::uint32_t quiet = mantissa != 0 ? 0x400000 : 0;
    return std::bit_cast<float>(sign | 0x7f800000 | quiet | mantissa << 13);
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

std::uint16_t F32ToF16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  std::uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00 | ((magnitude >> 13) & 0x3ff);
  } else if (magnitude >= 0x477ff000) {  // 65520, half way past the largest half
    half = 0x7c00;
  } else if (magnitude >= 0x38800000) {  // 2^-14, the smallest normal half
    const std::uint32_t odd = (magnitude >> 13) & 1;
    half = (magnitude + 0xfff + odd - (112u << 23)) >> 13;
  } else {
    // The last bit of a sum with 0.5 is 2^-24, so the addition itself rounds to a subnormal.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(sum) - 0x3f000000;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float BF16ToF32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t F32ToBF16(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<std::uint16_t>(bits >> 16 | 0x40);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float Mxfp4Scale(std::uint8_t exponent) {
  const std::uint32_t e = exponent;
  return std::bit_cast<float>(e < 2 ? 0x200000u << e : (e - 1) << 23);
}

}  // namespace foretoken::tensor
