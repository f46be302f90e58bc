// SPDX-License-Identifier: Apache-2.0
// What the reader and the grammar of harmony make of answers whose marks are control tokens, or text.
#include "calls/form_testing.h"

namespace foretoken::calls {
namespace {

using enum AnswerPart::Kind;

// Without control tokens, and with all of them.
std::span<const FormTesting> Harmony() {
  static const auto forms = FormTesting::All(
      "harmony", {"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|constrain|>"});
  return std::span(forms).first(2);
}

AnswerParts HarmonyParts(const std::string& answer) {
  const AnswerParts parts = Harmony()[1].Read(answer, {});
  EXPECT_EQ(Harmony()[0].Read(answer, {}), parts);
  return parts;
}

TEST(HarmonyReader, DividesChannels) {
  EXPECT_EQ(HarmonyParts("<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
                         "<|channel|>final<|message|>Yes. <|x|>"),
            (AnswerParts{{kThought, "Hm."}, {kText, "Yes. <|x|>"}}));
  EXPECT_EQ(HarmonyParts("<|channel|>final<|message|>a <|b <<|chan"), TextOf("a <|b <<|chan"));
  EXPECT_EQ(HarmonyParts("<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
                         "<|channel|>final<|message|>Found."),
            TextOf("I look.\n\nFound."));
}

TEST(HarmonyReader, FindsCallsByTheirRecipients) {
  for (const char* const header :
       {"<|channel|>commentary to=functions.now <|constrain|>json<|message|>",
        "<|channel|>commentary to=functions.now<|message|>",
        " to=functions.now<|channel|>commentary json<|message|>",
        "<|channel|>analysis to=functions.now code<|message|> "})
    EXPECT_EQ(HarmonyParts(header + std::string("{\"a\": 1}")), PartsOf({{"now", "{\"a\": 1}"}}))
        << header;
  EXPECT_EQ(
      HarmonyParts("<|channel|>analysis<|message|>I must.<|end|><|start|>assistant to=functions."
                   "now<|channel|>commentary<|message|>{\"a\": 1}"),
      (AnswerParts{{kThought, "I must."}, {kName, "now"}, {kArguments, "{\"a\": 1}"}}));
}

TEST(HarmonyReader, LeavesOtherAnswersAsTheyAre) {
  for (const char* const text : {"Hello.", " to", "to=functions.now", " tomorrow", ""})
    EXPECT_EQ(HarmonyParts(text), TextOf(text));
  const std::string spaces(1000, ' ');
  EXPECT_EQ(HarmonyParts(spaces), TextOf(spaces));
}

bool Allows(const ToolUse& use, const std::string& answer) {
  const auto allows = [&](const FormTesting& form) {
    return form.Takes(form.Grammar(use).gbnf, answer);
  };
  const bool allowed = allows(Harmony()[1]);
  EXPECT_EQ(allows(Harmony()[0]), allowed) << answer;
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
