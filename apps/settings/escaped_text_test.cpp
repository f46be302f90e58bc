// SPDX-License-Identifier: Apache-2.0
#include "settings/escaped_text.h"

#include <gtest/gtest.h>

namespace foretoken::settings {
namespace {

TEST(EscapedText, LeavesTextAsItIs) {
  for (const char* text :
       {"", "plain", "two\nlines\tand a tab", "caf\u00e9 \u4e16\u754c \U0001f600",
        "\u0645\u0631\u062d\u0628\u0627", "\U0001f468\u200d\U0001f469", "\\u001b"})
    EXPECT_EQ(Escaped(text), text);
}

TEST(EscapedText, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(Escaped("\x1b]0;title\x07"), "\\u001b]0;title\\u0007");
  EXPECT_EQ(Escaped("a\rb\bc\x7f"), "a\\u000db\\u0008c\\u007f");
  EXPECT_EQ(Escaped(std::string_view("a\0b", 3)), "a\\u0000b");
  EXPECT_EQ(Escaped("\u009b31m"), "\\u009b31m");  // C1: ESC [ in one character
}

TEST(EscapedText, WhatTurnsTextIsEscaped) {
  EXPECT_EQ(Escaped("a\u202eb\u202c\u2066c\u2069\u200f\u061c"),
            "a\\u202eb\\u202c\\u2066c\\u2069\\u200f\\u061c");
}

TEST(EscapedText, BytesThatAreNoUtf8AreEscaped) {
  EXPECT_EQ(Escaped("a\x9b"
                    "31m"),
            "a\\x9b31m");
  EXPECT_EQ(Escaped("\xe2\x82"), "\\xe2\\x82");
  EXPECT_EQ(Escaped("\xc0\x9b"), "\\xc0\\x9b");  // ESC, longer than it need be
  EXPECT_EQ(Escaped("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");
  EXPECT_EQ(Escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

}  // namespace
}  // namespace foretoken::settings
