// SPDX-License-Identifier: Apache-2.0
#include "settings/values.h"

#include <gtest/gtest.h>

#include <limits>

namespace foretoken::settings {
namespace {

TEST(Values, IntegersAreWholeAndInRange) {
  EXPECT_EQ(*ParseInteger("-1", -1, 5), -1);
  EXPECT_EQ(*ParseInteger("+3", -1, 5), 3);
  for (const char* text : {"", "x", "3x", "1.5", " 3", "6", "-2", "99999999999999999999", "+-1"})
    EXPECT_FALSE(ParseInteger(text, -1, 5)) << text;
}

TEST(Values, NumbersAreFinite) {
  EXPECT_FLOAT_EQ(*ParseNumber("0.25", 0, 1), 0.25f);
  EXPECT_FLOAT_EQ(*ParseNumber("1e-1", 0, 1), 0.1f);
  for (const char* text : {"", "nan", "inf", "1.0001", "-0.1", "0,5"})
    EXPECT_FALSE(ParseNumber(text, 0, 1)) << text;
}

TEST(Values, SeedsUseAll64Bits) {
  EXPECT_EQ(*ParseSeed("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_FALSE(ParseSeed("18446744073709551616"));
  EXPECT_FALSE(ParseSeed("-5"));
}

TEST(Values, TokenIdListsAllowSpacesAndNothingElse) {
  EXPECT_EQ(*ParseTokenIds("1, 2,3"), (std::vector<std::int32_t>{1, 2, 3}));
  for (const char* text : {"", ",", "1,", "1,,2", "-1", "a", "2147483648"})
    EXPECT_FALSE(ParseTokenIds(text)) << text;
}

TEST(Values, LogitBiasIsAnIdAndANumberOrMinusInfinity) {
  EXPECT_EQ(*ParseLogitBias("5=-1.5"), (std::pair<std::int32_t, float>(5, -1.5f)));
  EXPECT_EQ(ParseLogitBias("5=-inf")->second, -std::numeric_limits<float>::infinity());
  for (const char* text : {"", "5", "=1", "5=", "5=inf", "5=nan", "-5=1", "5=1x"})
    EXPECT_FALSE(ParseLogitBias(text)) << text;
}

}  // namespace
}  // namespace foretoken::settings
