// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <gtest/gtest.h>

#include <tuple>

namespace foretoken {
namespace {

using enum Utf8State;

TEST(ReadUtf8, GivesTheFirstCharacter) {
  for (const auto& [text, code, size] : {std::tuple{"ab", U'a', 1U},
                                         {"\xC3\xA9", U'\u00E9', 2U},
                                         {"\xE2\x82\xAC!", U'\u20AC', 3U},
                                         {"\xF0\x9F\x98\x80", U'\U0001F600', 4U}}) {
    const Utf8Character c = ReadUtf8(text);
    EXPECT_TRUE(c.valid()) << text;
    EXPECT_EQ(c.code, code) << text;
    EXPECT_EQ(c.size, size) << text;
  }
  EXPECT_EQ(ReadUtf8(std::string(1, '\0')).size, 1U);
}

TEST(ReadUtf8, TellsWhatIsCutFromWhatIsWrong) {
  for (const auto& [text, state, size] : {std::tuple{"", kIncomplete, 0U},
                                          {"\xC3", kIncomplete, 1U},
                                          {"\xE2\x82", kIncomplete, 2U},
                                          {"\xF0\x9F\x98", kIncomplete, 3U},
                                          {"\x80", kInvalid, 1U},
                                          {"\xC3(", kInvalid, 1U},
                                          {"\xE2\x82(", kInvalid, 2U},
                                          {"\xFF", kInvalid, 1U},
                                          {"\xC0\x80", kInvalid, 1U},          // overlong
                                          {"\xC1\xBF", kInvalid, 1U},          // overlong
                                          {"\xE0\x9F\xBF", kInvalid, 1U},      // overlong
                                          {"\xF0\x80\x80\x80", kInvalid, 1U},  // overlong
                                          {"\xED\xA0\x80", kInvalid, 1U},      // a surrogate
                                          {"\xF4\x90\x80\x80", kInvalid, 1U},  // over U+10FFFF
                                          {"\xF5\x80\x80\x80", kInvalid, 1U}}) {
    const Utf8Character c = ReadUtf8(text);
    EXPECT_EQ(c.state, state) << testing::PrintToString(text);
    EXPECT_EQ(c.size, size) << testing::PrintToString(text);
  }
}

}  // namespace
}  // namespace foretoken
