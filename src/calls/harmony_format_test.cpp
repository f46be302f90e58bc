// SPDX-License-Identifier: Apache-2.0
// What the reader and the grammar of harmony make of answers whose marks are control tokens, or text.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/control_text.h"
#include "calls/call_format.h"
#include "grammar/control_literal.h"
#include "grammar/grammar_program.h"
#include "grammar/grammar_states.h"

namespace foretoken::calls {
namespace {

using enum AnswerPart::Kind;
using AnswerParts = std::vector<AnswerPart>;

constexpr std::array kMarkNames = {"<|channel|>", "<|message|>", "<|start|>", "<|end|>",
                                   "<|constrain|>"};

const CallFormat& Harmony() {
  for (const CallFormat* const row : CallFormats())
    if (row->name == "harmony") return *row;
  throw std::invalid_argument("harmony");
}

ControlTokens Control(bool any) {
  ControlTokens control;
  if (!any) return control;
  for (std::size_t i = 0; i < kMarkNames.size(); ++i)
    control.Add(kMarkNames[i], static_cast<std::int32_t>(i));
  return control;
}

// The text with each mark written in another way.
template <typename Write>
std::string WithMarks(std::string text, const Write& write) {
  for (std::size_t i = 0; i < kMarkNames.size(); ++i) {
    const std::string mark = kMarkNames[i];
    for (std::size_t at = 0; (at = text.find(mark, at)) != text.npos;) {
      const std::string written = write(mark, static_cast<Token>(i));
      text.replace(at, mark.size(), written);
      at += written.size();
    }
  }
  return text;
}

AnswerParts HarmonyParts(const std::string& answer, bool control) {
  const std::string text = WithMarks(
      answer, [&](const std::string& mark, Token) { return control ? ControlText(mark) : mark; });
  AnswerParts whole;
  for (std::size_t piece = text.size() + 1; piece > 0; --piece) {
    const auto reader = Harmony().reader({}, Control(control));
    AnswerParts all;
    const auto take = [&](const AnswerParts& parts) {
      for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
    };
    for (std::size_t i = 0; i < text.size(); i += piece) {
      AnswerParts parts;
      reader->Read(std::string_view(text).substr(i, piece), parts);
      take(parts);
    }
    AnswerParts parts;
    reader->End(parts);
    take(parts);
    if (piece > text.size()) whole = all;
    EXPECT_EQ(all, whole) << piece;
  }
  return whole;
}

AnswerParts HarmonyParts(const std::string& answer) {
  const AnswerParts parts = HarmonyParts(answer, true);
  EXPECT_EQ(HarmonyParts(answer, false), parts);
  return parts;
}

TEST(HarmonyReader, DividesChannels) {
  EXPECT_EQ(HarmonyParts("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
                         "<|channel|>final<|message|>Yes. <|x|>"),
            (AnswerParts{{kThought, "Hm."}, {kText, "Yes. <|x|>"}}));
  EXPECT_EQ(HarmonyParts("<|channel|>final<|message|>a <|b <<|chan"),
            (AnswerParts{{kText, "a <|b <<|chan"}}));
  EXPECT_EQ(HarmonyParts("<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
                         "<|channel|>final<|message|>Found."),
            (AnswerParts{{kText, "I look.\n\nFound."}}));
}

TEST(HarmonyReader, FindsCallsByTheirRecipients) {
  const AnswerParts call = {{kName, "now"}, {kArguments, "{\"a\": 1}"}};
  for (const char* const header :
       {"<|channel|>commentary to=functions.now <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.now<|message|>",
        " to=functions.now<|channel|>commentary json<|message|>",
        "<|channel|>analysis to=functions.now code<|message|> "})
    EXPECT_EQ(HarmonyParts(header + std::string("{\"a\": 1}")), call) << header;
  EXPECT_EQ(
      HarmonyParts("<|channel|>analysis<|message|>I must.<|end|><|start|>assistant to=functions."
                   "now<|channel|>commentary<|message|>{\"a\": 1}"),
      (AnswerParts{{kThought, "I must."}, {kName, "now"}, {kArguments, "{\"a\": 1}"}}));
}

TEST(HarmonyReader, LeavesOtherAnswersAsTheyAre) {
  for (const char* const text : {"Hello.", " to", "to=functions.now", " tomorrow", ""})
    EXPECT_EQ(HarmonyParts(text), *text == 0 ? AnswerParts() : AnswerParts({{kText, text}}));
  const std::string spaces(1000, ' ');
  EXPECT_EQ(HarmonyParts(spaces), AnswerParts({{kText, spaces}}));
}

bool Allows(const ToolUse& use, const std::string& answer, bool control) {
  const auto grammar = Harmony().grammar(use, Control(control));
  EXPECT_TRUE(grammar) << grammar.error().message;
  auto program = grammar::CompileGbnf(grammar->gbnf);
  EXPECT_TRUE(program) << program.error().message << grammar->gbnf;
  grammar::GrammarStates states(*std::move(program));
  auto state = states.Start();
  const std::string text = WithMarks(answer, [&](const std::string& mark, Token token) {
    return control ? grammar::ControlLiteral(token) : mark;
  });
  for (const char c : text)
    if (state != grammar::GrammarStates::kOver)
      state = states.Next(state, static_cast<std::uint8_t>(c));
  return state != grammar::GrammarStates::kOver && states.CanEnd(state);
}

bool Allows(const ToolUse& use, const std::string& answer) {
  const bool allowed = Allows(use, answer, true);
  EXPECT_EQ(Allows(use, answer, false), allowed) << answer;
  return allowed;
}

TEST(HarmonyGrammar, HoldsCallsAndLeavesTextFree) {
  const std::vector<Tool> tools = {
      {"now"},
      {"add",
       R"({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})"}};
  const std::string thought = "<|channel|>analysis<|message|>Hm <|. <<|e<|end|><|start|>assistant";
  const std::string text = "<|channel|>final<|message|>It is \"to=functions.x\".";
  const std::string call =
      "<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 1}";
  const std::string other = " to=functions.now<|channel|>commentary json<|message|>{}";
  for (const bool required : {false, true}) {
    const ToolUse use = {.tools = tools, .required = required};
    EXPECT_EQ(Allows(use, text), !required);
    EXPECT_EQ(Allows(use, thought + text), !required);
    EXPECT_TRUE(Allows(use, thought + call));
    EXPECT_TRUE(Allows(use, call));
    EXPECT_TRUE(Allows(use, other));
    EXPECT_TRUE(Allows(use, "<|channel|>analysis to=functions.now code<|message|>{}"));
    EXPECT_FALSE(Allows(use, thought));
    EXPECT_FALSE(Allows(use, "text"));
    EXPECT_FALSE(Allows(use, "<|channel|>commentary to=functions.add<|message|>{\"a\": \"1\"}"));
    EXPECT_FALSE(Allows(use, "<|channel|>commentary to=functions.sub<|message|>{}"));
    EXPECT_FALSE(Allows(use, "<|channel|>final<|message|>a<|end|>b"));
  }
  const ToolUse typed = {.tools = {}, .text_grammar = "root ::= \"yes\" | \"no\"\n"};
  EXPECT_TRUE(Allows(typed, thought + "<|channel|>final<|message|>yes"));
  EXPECT_FALSE(Allows(typed, thought + "<|channel|>final<|message|>maybe"));
}

}  // namespace
}  // namespace foretoken::calls
