// SPDX-License-Identifier: Apache-2.0
// calls/form_testing.h: reads answers of a form, and asks its grammars, with any of its marks as
// control tokens.
#pragma once

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/control_text.h"
#include "calls/call_format.h"
#include "foretoken/structured_output.h"
#include "grammar/control_literal.h"
#include "grammar/grammar_program.h"
#include "grammar/grammar_states.h"

namespace foretoken::calls {

using AnswerParts = std::vector<AnswerPart>;
using Calls = std::vector<std::pair<std::string, std::string>>;  // names and arguments

inline AnswerParts PartsOf(const Calls& calls, const std::string& before = {},
                           const std::string& behind = {}) {
  AnswerParts parts;
  Add(parts, AnswerPart::Kind::kText, before);
  for (const auto& [name, arguments] : calls) {
    Add(parts, AnswerPart::Kind::kName, name);
    Add(parts, AnswerPart::Kind::kArguments, arguments);
  }
  Add(parts, AnswerPart::Kind::kText, behind);
  return parts;
}
inline AnswerParts TextOf(const std::string& text) {
  return PartsOf({}, text);
}

inline const CallFormat& FormNamed(std::string_view name) {
  for (const CallFormat* const row : CallFormats())
    if (row->name == name) return *row;
  throw std::invalid_argument(std::string(name));
}

inline std::string Replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

inline AnswerParts ReadPieces(CallReader& reader, std::string_view text, std::size_t piece) {
  AnswerParts all;
  const auto take = [&](const AnswerParts& parts) {
    for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
  };
  AnswerParts parts;
  for (std::size_t i = 0; i < text.size(); i += piece) {
    reader.Read(text.substr(i, piece), parts);
    take(std::exchange(parts, {}));
  }
  reader.End(parts);
  take(parts);
  return all;
}

// What the readers that make() gives take out of a text, however it is divided.
template <typename Make>
AnswerParts ReadText(const Make& make, std::string_view text) {
  const AnswerParts whole = ReadPieces(*make(), text, text.size() + 1);
  for (std::size_t piece = 1; piece < text.size(); ++piece)
    EXPECT_EQ(ReadPieces(*make(), text, piece), whole) << piece << text;
  return whole;
}

// What a text is to a grammar.
enum class Is { kAnswer, kBeginning, kNone };
inline Is WhatIs(const std::string& gbnf, std::string_view text) {
  auto program = grammar::CompileGbnf(gbnf);
  EXPECT_TRUE(program) << program.error().message << "\n" << gbnf;
  if (!program) return Is::kNone;
  grammar::GrammarStates states(*std::move(program));
  grammar::GrammarStates::State state = states.Start();
  for (const char c : text)
    if (state != grammar::GrammarStates::kOver)
      state = states.Next(state, static_cast<std::uint8_t>(c));
  if (state == grammar::GrammarStates::kOver) return Is::kNone;
  return states.CanEnd(state) ? Is::kAnswer : Is::kBeginning;
}
inline bool Takes(const std::string& gbnf, std::string_view text) {
  return WhatIs(gbnf, text) == Is::kAnswer;
}

class FormTesting {
 public:
  FormTesting(std::string_view name, std::vector<std::string> marks, ControlTokens control)
      : row_(FormNamed(name)), marks_(std::move(marks)), control_(std::move(control)) {}

  // The form with none of the marks as control tokens, with all of them, and with every second one.
  static std::vector<FormTesting> All(std::string_view name,
                                      const std::vector<std::string>& marks) {
    std::vector<ControlTokens> controls(4);
    for (std::size_t i = 0; i < marks.size(); ++i)
      for (std::size_t c = 1; c < controls.size(); ++c)
        if (c == 1 || i % 2 == c - 2) controls[c].Add(marks[i], static_cast<std::int32_t>(i));
    std::vector<FormTesting> all;
    for (ControlTokens& control : controls) all.emplace_back(name, marks, std::move(control));
    return all;
  }

  const CallFormat& row() const { return row_; }

  // The text, whose marks are control tokens where they may be, as readers and grammars get it.
  std::string ForReader(std::string text) const {
    for (const std::string& mark : marks_)
      if (control_.Has(mark)) text = Replaced(std::move(text), mark, ControlText(mark));
    return text;
  }
  std::string ForGrammar(std::string text) const {
    for (std::size_t i = 0; i < marks_.size(); ++i)
      if (control_.Has(marks_[i]))
        text = Replaced(std::move(text), marks_[i], grammar::ControlLiteral(static_cast<Token>(i)));
    return text;
  }

  AnswerParts Read(const std::string& answer, const std::vector<Tool>& tools) const {
    return ReadRaw(ForReader(answer), tools);
  }
  AnswerParts ReadRaw(const std::string& text, const std::vector<Tool>& tools) const {
    SCOPED_TRACE(row_.name);
    return ReadText([&] { return row_.reader(tools, control_); }, text);
  }
  AnswerParts ReadIn(std::size_t piece, std::string_view text,
                     const std::vector<Tool>& tools) const {
    return ReadPieces(*row_.reader(tools, control_), text, piece);
  }

  AnswerGrammar Grammar(const ToolUse& use) const {
    auto grammar = row_.grammar(use, control_);
    EXPECT_TRUE(grammar) << grammar.error().message;
    return grammar ? *grammar : AnswerGrammar{"root ::= \"\"\n"};
  }
  Is WhatIs(const std::string& gbnf, const std::string& answer) const {
    return calls::WhatIs(gbnf, ForGrammar(answer));
  }
  bool Takes(const std::string& gbnf, const std::string& answer) const {
    return WhatIs(gbnf, answer) == Is::kAnswer;
  }

 private:
  const CallFormat& row_;
  std::vector<std::string> marks_;
  ControlTokens control_;
};

// A form follows what is asked of its calls. calls: one, and two.
inline void ExpectFollowsWhatIsAsked(const FormTesting& form, const std::vector<Tool>& tools,
                                     const std::string& one_call, const std::string& two_calls) {
  SCOPED_TRACE(form.row().name);
  const std::string choice = ChoiceGrammar(std::vector<std::string>{"yes", "[no]"}).value(),
                    must = form.Grammar({.tools = tools, .required = true}).gbnf,
                    one = form.Grammar({.tools = tools, .several = false}).gbnf,
                    closed = form.Grammar({.tools = tools, .text_grammar = choice}).gbnf;
  EXPECT_TRUE(form.Takes(must, two_calls));
  EXPECT_EQ(form.WhatIs(must, ""), Is::kBeginning);
  EXPECT_EQ(form.WhatIs(must, "Hello"), Is::kNone);
  EXPECT_TRUE(form.Takes(one, one_call));
  EXPECT_FALSE(form.Takes(one, two_calls));
  EXPECT_TRUE(form.Takes(closed, one_call));
  for (const char* const text : {"yes", "[no]"}) EXPECT_TRUE(form.Takes(closed, text));
  EXPECT_EQ(form.WhatIs(closed, "maybe"), Is::kNone);
}

// The form of this name is the first that may have written the conversation, of at most so many.
inline void ExpectWrote(std::string_view name, const std::string& conversation, int most = 1) {
  int n = 0;
  for (const CallFormat* const row : CallFormats()) n += row->wrote(conversation) ? 1 : 0;
  const CallFormat* const format = FormatOf(conversation);
  ASSERT_NE(format, nullptr) << conversation;
  EXPECT_EQ(format->name, name) << conversation;
  EXPECT_LE(n, most) << conversation;
}

}  // namespace foretoken::calls
