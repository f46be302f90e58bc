// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tensor/dtype.h"

namespace foretoken::tensor {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// The definition of half precision, computed in doubles.
double ValueOfHalf(std::uint32_t bits) {
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  const int exponent = static_cast<int>(bits >> 10) & 31;
  const double mantissa = static_cast<double>(bits & 0x3ff) / 1024.0;
  if (exponent == 31) return sign * static_cast<double>(kInf);
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1.0 + mantissa, exponent - 15));
}

bool IsNanHalf(std::uint32_t bits) {
  return (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
}

TEST(Half, EveryPatternHasItsValue) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float x = F16ToF32(static_cast<std::uint16_t>(bits));
    if (IsNanHalf(bits)) {
      ASSERT_TRUE(std::isnan(x)) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(x), ValueOfHalf(bits)) << bits;
    ASSERT_EQ(std::signbit(x), (bits & 0x8000) != 0) << bits;
  }
}

TEST(Half, EveryPatternSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const std::uint16_t back = F32ToF16(F16ToF32(static_cast<std::uint16_t>(bits)));
    // A signalling NaN comes back quiet.
    ASSERT_EQ(back, IsNanHalf(bits) ? bits | 0x200 : bits);
  }
}

TEST(Half, RoundsToNearestAndTiesToEvenBetweenAllNeighbours) {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const double low = ValueOfHalf(bits), high = ValueOfHalf(bits + 1);
    const float middle = static_cast<float>((low + high) / 2);
    ASSERT_EQ(F32ToF16(middle), (bits & 1) != 0 ? bits + 1 : bits) << bits;
    ASSERT_EQ(F32ToF16(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(F32ToF16(std::nextafter(middle, kInf)), bits + 1);
    ASSERT_EQ(F32ToF16(-std::nextafter(middle, kInf)), (bits + 1) | 0x8000);
  }
}

TEST(Half, OverflowsToInfinityFromHalfWayPastTheLargest) {
  EXPECT_EQ(F32ToF16(65504.0f), 0x7bff);
  EXPECT_EQ(F32ToF16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7c00);
  EXPECT_EQ(F32ToF16(-1e30f), 0xfc00);
  EXPECT_EQ(F32ToF16(-kInf), 0xfc00);
}

TEST(Half, UnderflowsToSignedZero) {
  EXPECT_EQ(F32ToF16(0x1p-25f), 0);
  EXPECT_EQ(F32ToF16(std::nextafter(0x1p-25f, 1.0f)), 1);
  EXPECT_EQ(F32ToF16(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(F32ToF16(-0.0f), 0x8000);
}

TEST(Half, KeepsNanEvenWhenItsPayloadIsCutOff) {
  const float nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(IsNanHalf(F32ToF16(nan)));
  EXPECT_TRUE(std::isnan(BF16ToF32(F32ToBF16(nan))));
  EXPECT_TRUE(std::isnan(BF16ToF32(F32ToBF16(std::bit_cast<float>(0xffffffffu)))));
}

TEST(Bfloat, EveryPatternSurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float x = BF16ToF32(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(x), bits << 16);
    ASSERT_EQ(F32ToBF16(x), std::isnan(x) ? bits | 0x40 : bits);
  }
}

TEST(Bfloat, RoundsToNearestAndTiesToEvenBetweenAllNeighbours) {
  for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
    const std::uint32_t middle = bits << 16 | 0x8000;
    ASSERT_EQ(F32ToBF16(std::bit_cast<float>(middle)), (bits & 1) != 0 ? bits + 1 : bits);
    ASSERT_EQ(F32ToBF16(std::bit_cast<float>(middle - 1)), bits);
    ASSERT_EQ(F32ToBF16(std::bit_cast<float>(middle + 1)), bits + 1);
  }
  EXPECT_EQ(F32ToBF16(std::numeric_limits<float>::max()), 0x7f80);
}

}  // namespace
}  // namespace foretoken::tensor
