// SPDX-License-Identifier: Apache-2.0
#include "calls/thought.h"

#include <tuple>

#include "calls/form_testing.h"

namespace foretoken::calls {
namespace {

using enum AnswerPart::Kind;

struct Thinker {
  bool begun = false, calls = false;
};

AnswerParts Thoughts(const Thinker& thinker, std::string_view answer) {
  static const std::vector<Tool> tools = {{"now"}};
  const AnswerForm form = {.thoughts = &kThoughtMarks.front(), .begun = thinker.begun};
  return ReadText(
      [&] {
        return std::make_unique<AnswerReader>(
            form, ControlTokens{},
            thinker.calls ? CallFormats().front()->reader(tools, {}) : nullptr);
      },
      answer);
}

TEST(AnswerReader, DividesThoughtsFromAnswers) {
  EXPECT_EQ(Thoughts({}, "<think>\nHm, <b>?\n</think>\n\nYes."),
            (AnswerParts{{kThought, "Hm, <b>?"}, {kText, "Yes."}}));
  EXPECT_EQ(Thoughts({}, " <think></think> Yes."), TextOf("Yes."));
  EXPECT_EQ(Thoughts({.begun = true}, "Hm.</think>Yes."),
            (AnswerParts{{kThought, "Hm."}, {kText, "Yes."}}));
}

TEST(AnswerReader, LeavesOtherAnswersAsTheyAre) {
  for (const char* const text : {" a\n", "<thin", "\n<", "So <think>no</think>", "  "})
    EXPECT_EQ(Thoughts({}, text), TextOf(text)) << text;
  EXPECT_EQ(Thoughts({}, ""), AnswerParts());
}

TEST(AnswerReader, KeepsAThoughtThatTheEndCuts) {
  EXPECT_EQ(Thoughts({}, "<think>Hm </thi"), (AnswerParts{{kThought, "Hm </thi"}}));
  EXPECT_EQ(Thoughts({.begun = true}, " \n"), AnswerParts());
}

TEST(AnswerReader, ReadsCallsBehindThoughts) {
  EXPECT_EQ(Thoughts({.begun = true, .calls = true},
                     "I call <tool_call>?</think>\n<tool_call>{\"name\": \"now\"}</tool_call>"),
            (AnswerParts{{kThought, "I call <tool_call>?"}, {kName, "now"}, {kArguments, "{}"}}));
}

// Marks that are control tokens, text that spells them, and another control token.
TEST(AnswerReader, TellsControlTokensFromText) {
  ControlTokens control;
  control.Add("[THINK]", 1);
  control.Add("[/THINK]", 2);
  const ThoughtMarks& marks = ThoughtMarksOf("{% if x %}[THINK]{{ t }}[/THINK]{% endif %}");
  const std::string answer = ControlText("[THINK]") + "Is [/THINK] it?" + ControlText("[/THINK]") +
                             "a" + ControlText("[X]") + "b";
  for (const bool keeps : {false, true}) {
    const AnswerForm form = {.thoughts = &marks, .keeps_control = keeps};
    EXPECT_EQ(
        ReadText([&] { return std::make_unique<AnswerReader>(form, control, nullptr); }, answer),
        (AnswerParts{{kThought, "Is [/THINK] it?"}, {kText, keeps ? "a[X]b" : "ab"}}));
  }
}

// What a count of a thought's tokens asks for.
TEST(AnswerReader, SaysWhetherItThinks) {
  using enum Thinking;
  for (const auto& [begun, answer, thinking] :
       std::vector<std::tuple<bool, std::string, Thinking>>{{false, "", kLater},
                                                            {false, " <thi", kLater},
                                                            {false, "<think>", kNow},
                                                            {true, "", kNow},
                                                            {true, "a</thi", kNow},
                                                            {true, "a</think>", kNever},
                                                            {false, "a<think>", kNever}}) {
    AnswerReader reader({.thoughts = &kThoughtMarks.front(), .begun = begun}, {}, nullptr);
    AnswerParts parts;
    reader.Read(answer, parts);
    EXPECT_EQ(reader.thinking(), thinking) << answer;
  }
}

TEST(EndsInThought, LooksAtTheLastMark) {
  EXPECT_TRUE(EndsInThought("<|assistant|>\n<think>\n", kThoughtMarks.front()));
  EXPECT_FALSE(EndsInThought("<think>\n</think>\n\n", kThoughtMarks.front()));
  EXPECT_FALSE(EndsInThought("", kThoughtMarks.front()));
}

TEST(PerhapsBehindThought, TakesAnswersWithAndWithoutAThought) {
  const std::string gbnf =
      PerhapsBehindThought("root ::= \"yes\"\n", ThoughtMarksOf("[THINK][/THINK]"), {});
  EXPECT_TRUE(Takes(gbnf, "yes"));
  EXPECT_TRUE(Takes(gbnf, "[THINK]no[/THINK]yes"));
  EXPECT_FALSE(Takes(gbnf, "[THINK]yes"));
  EXPECT_FALSE(Takes(gbnf, "no"));
  EXPECT_FALSE(Thinks("{{ x }}"));
  EXPECT_TRUE(Thinks("[THINK]{{ x }}[/THINK]"));
}

TEST(BehindThought, HoldsWhatFollowsTheThought) {
  const std::string gbnf = BehindThought("root ::= \"yes\" | \"no\"\n", kThoughtMarks.front(), {});
  EXPECT_TRUE(Takes(gbnf, "Maybe <b> yes?</think>\n\nyes"));
  EXPECT_TRUE(Takes(gbnf, "</think>no"));
  EXPECT_FALSE(Takes(gbnf, "Maybe"));  // the answer comes
  EXPECT_FALSE(Takes(gbnf, "Maybe</think>maybe"));
  EXPECT_FALSE(Takes(gbnf, "</think>"));
}

}  // namespace
}  // namespace foretoken::calls
