// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/utf8_stream.h"

#include <gtest/gtest.h>

namespace foretoken::text {
namespace {

// The text that comes out when the bytes go in one by one.
std::string Stream(std::string_view bytes) {
  Utf8Stream stream;
  std::string shown;
  for (const char byte : bytes) shown += stream.Push(std::string_view(&byte, 1));
  return shown + stream.Finish();
}

TEST(Utf8Stream, HoldsBackIncompleteCharacters) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.Push("\x98"), "");
  EXPECT_EQ(stream.Push("\x80"
                        "b"),
            "😀b");
  EXPECT_EQ(stream.Finish(), "");
}

TEST(Utf8Stream, GivesValidTextUnchanged) {
  const std::string text = "aé世😀\u0080\uFFFF\U0010FFFF" + std::string(1, '\0');
  EXPECT_EQ(Stream(text), text);
}

TEST(Utf8Stream, ReplacesEachMaximalInvalidPart) {
  EXPECT_EQ(Stream("a\xFF"
                   "b"),
            "a\uFFFDb");
  EXPECT_EQ(Stream("\xE4\xBD"
                   "b"),
            "\uFFFDb");                                     // a character cut short: one part
  EXPECT_EQ(Stream("\xC0\xAF"), "\uFFFD\uFFFD");            // overlong
  EXPECT_EQ(Stream("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");  // a surrogate
  EXPECT_EQ(Stream("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // over U+10FFFF
  EXPECT_EQ(Stream("\x80"), "\uFFFD");
}

TEST(Utf8Stream, FinishReplacesWhatIsStillHeldBack) {
  EXPECT_EQ(Stream("a\xF0\x9F\x98"), "a\uFFFD");
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("\xE4"), "");
  EXPECT_EQ(stream.Finish(), "\uFFFD");
  EXPECT_EQ(stream.Push("\xBD"), "\uFFFD");  // a fresh start
}

}  // namespace
}  // namespace foretoken::text
