// SPDX-License-Identifier: Apache-2.0
#include "server/api/reply_forms.h"

#include <gtest/gtest.h>

#include "base/json/json_reader.h"

namespace foretoken::server {
namespace {

Json FormNamed(const std::string& name, std::string_view text) {
  return ReplyForms(text).at(name);
}

TEST(ReplyForms, AreSchemas) {
  const auto schema = [](const char* text) { return JsonOrNull(text); };
  EXPECT_EQ(FormNamed("A", "A = string | null"), schema(R"({"type":["string","null"]})"));
  EXPECT_EQ(FormNamed("A", "A = 'x' | 'y' | null"), schema(R"({"enum":["x","y",null]})"));
  EXPECT_EQ(FormNamed("A", "A = [B | 0]"),
            schema(R"({"type":"array","items":{"anyOf":[{"$ref":"#/components/schemas/B"},
                                                        {"const":0}]}})"));
  EXPECT_EQ(FormNamed("A", "A = []"), schema(R"({"type":"array","maxItems":0})"));
  EXPECT_EQ(FormNamed("A", "A = {a: true, b?: any, *: integer}"),
            schema(R"({"type":"object","properties":{"a":{"const":true},"b":{}},"required":["a"],
                       "additionalProperties":{"type":"integer"}})"));
}

TEST(ReplyForms, HaveTheMembersOfOthers) {
  const std::string_view text = "_A = {a: string, b?: null}\nB = {..._A, c: 'c'} C = {...?B}";
  EXPECT_FALSE(ReplyForms(text).contains("_A"));
  EXPECT_EQ(FormNamed("B", text)["required"], Json({"a", "c"}));
  EXPECT_EQ(FormNamed("C", text)["properties"], FormNamed("B", text)["properties"]);
  EXPECT_FALSE(FormNamed("C", text).contains("required"));
}

// Whatever is written wrongly, reading ends.
TEST(ReplyForms, EndAtAFault) {
  const std::string_view text = "A = {a: [string], ..._B, c?: 'x' | {*: any}} B = A";
  for (std::size_t n = 0; n < text.size(); ++n) {
    EXPECT_LE(ReplyForms(text.substr(0, n)).size(), 2u);
    EXPECT_LE(ReplyForms(text.substr(n)).size(), 2u);
  }
}

// All forms that others name are there.
TEST(ReplyForms, OfTheTableAreWhole) {
  const Json forms = ReplyForms(TextOfReplies());
  EXPECT_TRUE(forms.contains("OllamaShow"));  // the last one
  const std::string text = forms.dump(), begin = "#/components/schemas/";
  for (std::size_t at = text.find(begin); at != text.npos; at = text.find(begin, at + 1)) {
    const std::size_t name = at + begin.size();
    const std::string form = text.substr(name, text.find('"', name) - name);
    EXPECT_TRUE(forms.contains(form) || form.ends_with("Error")) << form;
  }
}

}  // namespace
}  // namespace foretoken::server
