// SPDX-License-Identifier: Apache-2.0
// Which answers the grammars of call formats allow.
#include "calls/answer_grammar.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "foretoken/structured_output.h"
#include "grammar/grammar_program.h"
#include "grammar/grammar_states.h"

namespace foretoken::calls {
namespace {

using grammar::GrammarStates;

// Whether the text is an answer; nothing: it is the beginning of one.
std::optional<bool> Takes(const std::string& gbnf, std::string_view text) {
  auto program = grammar::CompileGbnf(gbnf);
  EXPECT_TRUE(program) << program.error().message << "\n" << gbnf;
  if (!program) return false;
  GrammarStates states(*std::move(program));
  GrammarStates::State state = states.Start();
  for (const char c : text) {
    if (state == GrammarStates::kOver) return false;
    state = states.Next(state, static_cast<std::uint8_t>(c));
  }
  if (state == GrammarStates::kOver) return false;
  return states.CanEnd(state) ? std::optional(true) : std::nullopt;
}

const std::vector<Tool> kTools = {
    {"weather",
     R"({"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"},)"
     R"( "unit": {"type": "string", "enum": ["C", "F"]}}, "required": ["city"],)"
     R"( "additionalProperties": false})"},
    {"now"}};

std::string GrammarOf(std::string_view format, const ToolUse& use) {
  for (const CallFormat* const row : CallFormats())
    if (row->name == format) return row->grammar(use, {}).value().gbnf;
  return {};
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
    EXPECT_EQ(Takes(gbnf, text), true) << text;
  EXPECT_EQ(Takes(gbnf, "Well. <tool_call>"), std::nullopt);
  for (const char* const text :
       {"<tool_call>no", "<<tool_call>no", "<tool_call>\n{\"name\": \"other\"",
        "<tool_call>\n{\"arguments\"", "<tool_call>\n{\"name\": \"weather\", \"arguments\": {}",
        "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": 1"})
    EXPECT_EQ(Takes(gbnf, text), false) << text;
  EXPECT_EQ(Takes(gbnf, kNow + " and"), false);
}

TEST(AnswerGrammar, WantsACallWhereOneIsRequired) {
  const std::string gbnf = GrammarOf("hermes", {.tools = kTools, .required = true});
  EXPECT_EQ(Takes(gbnf, kNow), true);
  EXPECT_EQ(Takes(gbnf, ""), std::nullopt);
  EXPECT_EQ(Takes(gbnf, "H"), false);
}

TEST(AnswerGrammar, AllowsOneCallWhereSeveralAreNotWanted) {
  const std::string gbnf = GrammarOf("hermes", {.tools = kTools, .several = false});
  EXPECT_EQ(Takes(gbnf, kNow), true);
  EXPECT_EQ(Takes(gbnf, kNow + "\n" + kNow), false);
}

TEST(AnswerGrammar, HoldsOtherAnswersToTheirOwnForm) {
  const std::string text = ChoiceGrammar(std::vector<std::string>{"yes", "no"}).value();
  for (const CallFormat* const row : CallFormats()) {
    if (row->whole) continue;  // its texts have a form of their own
    const std::string gbnf = row->grammar({.tools = kTools, .text_grammar = text}, {}).value().gbnf;
    EXPECT_EQ(Takes(gbnf, "yes"), true) << row->name;
    EXPECT_EQ(Takes(gbnf, "maybe"), false) << row->name;
  }
  EXPECT_EQ(Takes(GrammarOf("hermes", {.tools = kTools, .text_grammar = text}), kNow), true);
}

TEST(AnswerGrammar, KnowsListsAndBareObjects) {
  const std::string list = GrammarOf("nemotron", {.tools = kTools});
  EXPECT_EQ(Takes(list,
                  "Hm. <TOOLCALL>[{\"name\": \"now\", \"arguments\": {}}, {\"name\": "
                  "\"now\", \"arguments\": {}}]</TOOLCALL>"),
            true);
  const std::string bare = GrammarOf("llama", {.tools = kTools});
  EXPECT_EQ(Takes(bare, "{\"name\": \"now\", \"parameters\": {}}"), true);
  EXPECT_EQ(Takes(bare, "Hello {"), true);
  EXPECT_EQ(Takes(bare, ""), true);
  EXPECT_EQ(Takes(bare, "{\"city\""), false);
}

TEST(AnswerGrammar, KnowsTagsAndTheirValues) {
  const std::string gbnf = GrammarOf("qwen-coder", {.tools = kTools});
  const std::string head = "<tool_call>\n<function=weather>\n";
  const std::string tail = "</function>\n</tool_call>";
  const std::string city = "<parameter=city>\nNew \"York\"\n<b>\n</parameter>\n";
  EXPECT_EQ(Takes(gbnf, head + city + tail), true);
  EXPECT_EQ(Takes(gbnf, "So. " + head + city + "<parameter=days>\n12\n</parameter>\n" + tail),
            true);
  EXPECT_EQ(Takes(gbnf, head + city + "<parameter=unit>\nC\n</parameter>\n" + tail), true);
  EXPECT_EQ(Takes(gbnf, head + city + "<parameter=unit>\nK"), false);
  EXPECT_EQ(Takes(gbnf, head + city + "<parameter=days>\nfew"), false);
  EXPECT_EQ(Takes(gbnf, head + "</function>"), false);  // the city is required
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
  EXPECT_EQ(Takes(gbnf, call("äb", "xx", "one", "any text")), true);
  EXPECT_EQ(Takes(gbnf, call("abcd", "xx", "one", "d")), false);
  EXPECT_EQ(Takes(gbnf, call("a", "xx", "one", "d")), false);
  EXPECT_EQ(Takes(gbnf, call("ab", "xy", "one", "d")), false);
  EXPECT_EQ(Takes(gbnf, call("ab", "xx", "two", "d")), false);
  EXPECT_EQ(Takes(gbnf, call("ab", "xx", "one", "")), false);
}

TEST(AnswerGrammar, SaysWhichSchemaIsNotFollowed) {
  const std::vector<Tool> tools = {{"odd", R"({"type": "object", "not": {}})"}};
  const auto grammar = CallFormats()[0]->grammar({.tools = tools}, {}).value();
  ASSERT_EQ(grammar.notices.size(), 1u);
  EXPECT_TRUE(grammar.notices[0].starts_with("tools: the arguments of odd may be any object"))
      << grammar.notices[0];
  EXPECT_EQ(Takes(grammar.gbnf,
                  "<tool_call>\n{\"name\": \"odd\", \"arguments\": {\"a\": 1}}\n</tool_call>"),
            true);
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
