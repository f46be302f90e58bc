// SPDX-License-Identifier: Apache-2.0
#include "calls/thought.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "base/control_text.h"
#include "grammar/grammar_program.h"
#include "grammar/grammar_states.h"

namespace foretoken::calls {
namespace {

struct Thinker {
  bool begun = false, calls = false;
};

std::vector<AnswerPart> Thoughts(const Thinker& thinker, std::string_view answer) {
  static const std::vector<Tool> tools = {{"now"}};
  std::vector<AnswerPart> whole;
  for (std::size_t piece = answer.size() + 1; piece > 0; --piece) {
    AnswerReader reader({.thoughts = &kThoughtMarks.front(), .begun = thinker.begun}, {},
                        thinker.calls ? CallFormats().front()->reader(tools, {}) : nullptr);
    std::vector<AnswerPart> all;
    for (std::size_t i = 0; i < answer.size(); i += piece) {
      std::vector<AnswerPart> parts;
      reader.Read(answer.substr(i, piece), parts);
      for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
    }
    std::vector<AnswerPart> parts;
    reader.End(parts);
    for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
    if (piece > answer.size()) whole = all;
    EXPECT_EQ(all, whole) << piece;
  }
  return whole;
}

using enum AnswerPart::Kind;
using AnswerParts = std::vector<AnswerPart>;

TEST(AnswerReader, DividesThoughtsFromAnswers) {
  EXPECT_EQ(Thoughts({}, "<think>\nHm, <b>?\n</think>\n\nYes."),
            (AnswerParts{{kThought, "Hm, <b>?"}, {kText, "Yes."}}));
  EXPECT_EQ(Thoughts({}, " <think></think> Yes."), (AnswerParts{{kText, "Yes."}}));
  EXPECT_EQ(Thoughts({.begun = true}, "Hm.</think>Yes."),
            (AnswerParts{{kThought, "Hm."}, {kText, "Yes."}}));
}

TEST(AnswerReader, LeavesOtherAnswersAsTheyAre) {
  for (const char* const text : {" a\n", "<thin", "\n<", "So <think>no</think>", "  "})
    EXPECT_EQ(Thoughts({}, text), (AnswerParts{{kText, text}})) << text;
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
  for (const bool keeps : {false, true})
    for (std::size_t piece = 1; piece <= answer.size(); ++piece) {
      AnswerReader reader({.thoughts = &marks, .keeps_control = keeps}, control, nullptr);
      AnswerParts parts;
      for (std::size_t i = 0; i < answer.size(); i += piece)
        reader.Read(std::string_view(answer).substr(i, piece), parts);
      reader.End(parts);
      EXPECT_EQ(parts,
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
  auto program = grammar::CompileGbnf(gbnf);
  ASSERT_TRUE(program) << program.error().message;
  grammar::GrammarStates states(*std::move(program));
  for (const auto& [text, takes] : std::vector<std::pair<std::string, bool>>{
           {"yes", true}, {"[THINK]no[/THINK]yes", true}, {"[THINK]yes", false}, {"no", false}}) {
    auto state = states.Start();
    for (const char c : text)
      if (state != grammar::GrammarStates::kOver)
        state = states.Next(state, static_cast<std::uint8_t>(c));
    EXPECT_EQ(state != grammar::GrammarStates::kOver && states.CanEnd(state), takes) << text;
  }
  EXPECT_FALSE(Thinks("{{ x }}"));
  EXPECT_TRUE(Thinks("[THINK]{{ x }}[/THINK]"));
}

TEST(BehindThought, HoldsWhatFollowsTheThought) {
  auto program =
      grammar::CompileGbnf(BehindThought("root ::= \"yes\" | \"no\"\n", kThoughtMarks.front(), {}));
  ASSERT_TRUE(program) << program.error().message;
  grammar::GrammarStates states(*std::move(program));
  const auto takes = [&](std::string_view text) {
    auto state = states.Start();
    for (const char c : text)
      if (state != grammar::GrammarStates::kOver)
        state = states.Next(state, static_cast<std::uint8_t>(c));
    return state != grammar::GrammarStates::kOver && states.CanEnd(state);
  };
  EXPECT_TRUE(takes("Maybe <b> yes?</think>\n\nyes"));
  EXPECT_TRUE(takes("</think>no"));
  EXPECT_FALSE(takes("Maybe"));  // the answer comes
  EXPECT_FALSE(takes("Maybe</think>maybe"));
  EXPECT_FALSE(takes("</think>"));
}

}  // namespace
}  // namespace foretoken::calls
