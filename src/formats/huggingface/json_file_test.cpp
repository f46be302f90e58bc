// SPDX-License-Identifier: Apache-2.0
#include "formats/huggingface/json_file.h"

#include <gtest/gtest.h>

namespace foretoken::formats::huggingface {
namespace {

std::string WhyNot(std::string_view text) {
  const auto object = ParseObject(text, "a.json");
  return object ? "" : object.error().message;
}

TEST(JsonFile, ANameThatIsThereTwiceIsAnErrorHoweverItIsWritten) {
  for (const char* const text :
       {R"({"b": 1, "a": {}, "a": {}})", R"({"a": 1, "\u0061": 2})", R"({"a":1,"a":2,"a":3})"})
    EXPECT_TRUE(WhyNot(text).starts_with("a.json: a occurs twice")) << WhyNot(text);
}

TEST(JsonFile, NamesOfInnerObjectsAndColonsInTextsAreNotCounted) {
  for (const char* const text :
       {R"({})", R"({"a": {"a": 1, "a": 2}, "b": [{"a": 1, "b": 2}]})",
        R"({"a:b": ":", "c\":": "x\\", "d": "{:"})", R"({"a": [":", ":"], "b": {":": ":"}})"})
    EXPECT_EQ(WhyNot(text), "") << text;
}

TEST(JsonFile, WhatIsNoObjectIsAnError) {
  for (const char* const text : {"", "[]", "1", "{", R"({"a": })", R"({"a": 1, "a"})", "{:::}"})
    EXPECT_TRUE(WhyNot(text).starts_with("a.json: it is not")) << text << WhyNot(text);
}

}  // namespace
}  // namespace foretoken::formats::huggingface
