// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace foretoken {
namespace {

TEST(Utf8Character, IsTheFirstOfItsText) {
  for (const auto& [text, value, size] : {std::tuple{"ab", U'a', 1},
                                          {"\xC3\xA9", U'\u00E9', 2},
                                          {"\xE2\x82\xAC!", U'\u20AC', 3},
                                          {"\xF0\x9F\x98\x80", U'\U0001F600', 4}}) {
    const Utf8Character c = FirstUtf8Character(text);
    EXPECT_EQ(c.value, value) << text;
    EXPECT_EQ(c.size, size) << text;
  }
  EXPECT_EQ(FirstUtf8Character(std::string(1, '\0')).size, 1);
}

TEST(Utf8Character, IsNotWhatIsCutOrTooLongOrBeginsInTheMiddle) {
  for (const char* text :
       {"", "\x80", "\xC3", "\xC3(", "\xE2\x82", "\xF0\x9F\x98", "\xFF", "\xC0\x80", "\xC1\xBF",
        "\xE0\x80\x80", "\xE0\x9F\xBF", "\xF0\x80\x80\x80", "\xF5\x80\x80\x80"})
    EXPECT_EQ(FirstUtf8Character(text).size, 0) << text;
}

}  // namespace
}  // namespace foretoken
