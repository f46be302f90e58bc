// SPDX-License-Identifier: Apache-2.0
// Which answers the grammars of call formats allow.
#include "calls/answer_grammar.h"

#include "calls/form_testing.h"

namespace foretoken::calls {
namespace {

const std::vector<Tool> kTools = {
    {"weather",
     R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"},)"
     R"( "unit": {"type": "string", "enum": ["C", "F"]}}, "required": ["city"],)"
     R"( "additionalProperties": false})"},
    {"now"}};

std::string GrammarOf(std::string_view format, const ToolUse& use) {
  return FormNamed(format).grammar(use, {}).value().gbnf;
}

const std::string kNow = R"(<tool_call>
{"name": "now", "arguments": {}}
</tool_call>)";
const std::string kWeather = R"(<tool_call>
{"name": "weather", "arguments": {"city": "Rome", "days": 2}}
</tool_call>)";

TEST(AnswerGrammar, LeavesTextFreeUntilACallBegins) {
  const std::string gbnf = GrammarOf("hermes", {.tools = kTools});
  for (const std::string& text :
       {std::string(), std::string("Hello."), std::string("1 < 2 <tool_cal <<tool_cal"),
        std::string("äöü {\"name\""), kNow, "Well. " + kWeather, kNow + "\n" + kWeather,
        kNow + "\n\n" + kNow, "<<tool_call" + kNow.substr(10)})
    EXPECT_TRUE(Takes(gbnf, text)) << text;
  EXPECT_EQ(WhatIs(gbnf, "Well. <tool_call>"), Is::kBeginning);
  for (const char* const text :
       {"<tool_call>no", "<<tool_call>no", "<tool_call>\n{\"name\": \"other\"",
        "<tool_call>\n{\"arguments\"", "<tool_call>\n{\"name\": \"weather\", \"arguments\": {}",
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": 1"})
    EXPECT_EQ(WhatIs(gbnf, text), Is::kNone) << text;
  EXPECT_EQ(WhatIs(gbnf, kNow + " and"), Is::kNone);
}

TEST(AnswerGrammar, WantsACallWhereOneIsRequired) {
  const std::string gbnf = GrammarOf("hermes", {.tools = kTools, .required = true});
  EXPECT_TRUE(Takes(gbnf, kNow));
  EXPECT_EQ(WhatIs(gbnf, ""), Is::kBeginning);
  EXPECT_EQ(WhatIs(gbnf, "H"), Is::kNone);
}

TEST(AnswerGrammar, AllowsOneCallWhereSeveralAreNotWanted) {
  const std::string gbnf = GrammarOf("hermes", {.tools = kTools, .several = false});
  EXPECT_TRUE(Takes(gbnf, kNow));
  EXPECT_EQ(WhatIs(gbnf, kNow + "\n" + kNow), Is::kNone);
}

TEST(AnswerGrammar, HoldsOtherAnswersToTheirOwnForm) {
  const std::string text = ChoiceGrammar(std::vector<std::string>{"yes", "no"}).value();
  for (const CallFormat* const row : CallFormats()) {
    if (row->whole) continue;  // its texts have a form of their own
    const std::string gbnf = row->grammar({.tools = kTools, .text_grammar = text}, {}).value().gbnf;
    EXPECT_TRUE(Takes(gbnf, "yes")) << row->name;
    EXPECT_EQ(WhatIs(gbnf, "maybe"), Is::kNone) << row->name;
  }
  EXPECT_TRUE(Takes(GrammarOf("hermes", {.tools = kTools, .text_grammar = text}), kNow));
}

TEST(AnswerGrammar, KnowsListsAndBareObjects) {
  const std::string list = GrammarOf("nemotron", {.tools = kTools});
  EXPECT_TRUE(Takes(list,
                    "Hm. <TOOLCALL>[{\"name\": \"now\", \"arguments\": {}}, {\"name\": "
                    "\"now\", \"arguments\": {}}]</TOOLCALL>"));
  const std::string bare = GrammarOf("llama", {.tools = kTools});
  EXPECT_TRUE(Takes(bare, "{\"name\": \"now\", \"parameters\": {}}"));
  EXPECT_TRUE(Takes(bare, "Hello {"));
  EXPECT_TRUE(Takes(bare, ""));
  EXPECT_EQ(WhatIs(bare, "{\"city\""), Is::kNone);
}

TEST(AnswerGrammar, KnowsTagsAndTheirValues) {
  const std::string gbnf = GrammarOf("qwen-coder", {.tools = kTools});
  const std::string head = "<tool_call>\n<function=weather>\n";
  const std::string tail = "</function>\n</tool_call>";
  const std::string city = "<parameter=city>\nNew \"York\"\n<b>\n</parameter>\n";
  EXPECT_TRUE(Takes(gbnf, head + city + tail));
  EXPECT_TRUE(Takes(gbnf, "So. " + head + city + "<parameter=days>\n12\n</parameter>\n" + tail));
  EXPECT_TRUE(Takes(gbnf, head + city + "<parameter=unit>\nC\n</parameter>\n" + tail));
  EXPECT_EQ(WhatIs(gbnf, head + city + "<parameter=unit>\nK"), Is::kNone);
  EXPECT_EQ(WhatIs(gbnf, head + city + "<parameter=days>\nfew"), Is::kNone);
  EXPECT_EQ(WhatIs(gbnf, head + "</function>"), Is::kNone);  // the city is required
}

TEST(AnswerGrammar, HoldsValuesOfTagsToTheirLengthsAndPatterns) {
  const std::vector<Tool> tools = {
      {"f",
       R"({"type": "object", "required": ["a", "b", "c", "d"], "properties": {)"
       R"("a": {"type": "string", "minLength": 2, "maxLength": 3}, "b": {"type": "string", "pattern": "^x+$"},)"
       R"("c": {"const": "one"}, "d": {"type": "string", "minLength": 1}}})"}};
  const std::string gbnf = GrammarOf("qwen-coder", {.tools = tools});
  const auto call = [](const char* a, const char* b, const char* c, const char* d) {
    std::string text = "<tool_call>\n<function=f>\n";
    for (const auto& [name, value] : {std::pair("a", a), {"b", b}, {"c", c}, {"d", d}})
      text += std::string("<parameter=") + name + ">\n" + value + "\n</parameter>\n";
    return text + "</function>\n</tool_call>";
  };
  EXPECT_TRUE(Takes(gbnf, call("äb", "xx", "one", "any text")));
  EXPECT_EQ(WhatIs(gbnf, call("abcd", "xx", "one", "d")), Is::kNone);
  EXPECT_EQ(WhatIs(gbnf, call("a", "xx", "one", "d")), Is::kNone);
  EXPECT_EQ(WhatIs(gbnf, call("ab", "xy", "one", "d")), Is::kNone);
  EXPECT_EQ(WhatIs(gbnf, call("ab", "xx", "two", "d")), Is::kNone);
  EXPECT_EQ(WhatIs(gbnf, call("ab", "xx", "one", "")), Is::kNone);
}

TEST(AnswerGrammar, SaysWhichSchemaIsNotFollowed) {
  const std::vector<Tool> tools = {{"odd", R"({"type": "object", "not": {}})"}};
  const auto grammar = CallFormats()[0]->grammar({.tools = tools}, {}).value();
  ASSERT_EQ(grammar.notices.size(), 1u);
  EXPECT_TRUE(grammar.notices[0].starts_with("tools: the arguments of odd may be any object"))
      << grammar.notices[0];
  EXPECT_TRUE(Takes(grammar.gbnf,
                    "<tool_call>\n{\"name\": \"odd\", \"arguments\": {\"a\": 1}}\n</tool_call>"));
}

TEST(AnswerGrammar, WritesNamesWithAnyCharacters) {
  const std::vector<Tool> tools = {{"a\"b\\c]d{2}#"}};
  for (const CallFormat* const row : CallFormats())
    EXPECT_TRUE(row->grammar({.tools = tools}, {})) << row->name;
}

TEST(Prefixed, RenamesRulesAndNothingElse) {
  EXPECT_EQ(Prefixed("root ::= a-1{2,3} \"root \\\" a\" [root\\]] | x # root\nx ::= \"\"", "p-"),
            "p-root ::= p-a-1{2,3} \"root \\\" a\" [root\\]] | p-x \np-x ::= \"\"\n");
}

}  // namespace
}  // namespace foretoken::calls
