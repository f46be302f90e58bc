// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "foretoken/result.h"

namespace foretoken {
namespace {

TEST(Shown, KeepsPlainTextOfAnyLanguageAsItIs) {
  for (const std::string text : {"", "a name", "Größe 日本語 🙂", "C:\\folder\\file"})
    EXPECT_EQ(Shown(text), text);
}

TEST(Shown, WritesControlCharactersAsEscapes) {
  EXPECT_EQ(Shown("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(Shown(std::string_view("\x1b[31mred\x07\0", 9)), "\\x1b[31mred\\x07");
  EXPECT_EQ(Shown("\xc2\x9b"), "\\u{9b}");  // a C1 control, in UTF-8
  EXPECT_EQ(Shown("ab\xe2\x80\xae"
                  "dc"),
            "ab\\u{202e}dc");                           // right-to-left override
  EXPECT_EQ(Shown("\xff\xc3"), "\\xff\\xc3");           // no UTF-8
  EXPECT_EQ(Shown("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

TEST(Shown, IsBoundedAndCutsBetweenCharacters) {
  EXPECT_EQ(Shown(std::string(70'000, 'x'), 10), "xxxxxxxxxx...");
  EXPECT_EQ(Shown("ääää", 5), "ää...");
  EXPECT_EQ(Shown("ab\n", 3), "ab...");
  EXPECT_LE(Shown(std::string(70'000, '\x01')).size(), 83u);
}

TEST(Fail, GivesOneLineWhateverTheMessageRepeats) {
  const std::string text = std::string(70'000, 'x') + "\n\x1b[2J";
  const Status status = Fail(ErrorCode::kInvalidFile, "m.gguf: tensor " + text + ": bad; fetch it");
  const std::string& message = status.error().message;
  EXPECT_LE(message.size(), 2100u);
  EXPECT_EQ(message.find('\n'), std::string::npos);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_TRUE(message.starts_with("m.gguf: tensor xxx"));
  EXPECT_TRUE(message.ends_with("\\n\\x1b[2J: bad; fetch it"));
}

TEST(Fail, LeavesAnOrdinaryMessageAloneOnItsWayUp) {
  const std::string message = "m.gguf: tensor 'ä\\n': bad; fetch it again";
  Status status = Fail(ErrorCode::kInvalidFile, message);
  for (int i = 0; i < 3; ++i) status = Fail(std::move(status).error());
  EXPECT_EQ(status.error().message, message);
}

}  // namespace
}  // namespace foretoken
