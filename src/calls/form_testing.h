// SPDX-License-Identifier: Apache-2.0
// calls/form_testing.h: reads answers of a form, and asks its grammars, with any of its marks as
// control tokens.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/control_text.h"
#include "calls/call_format.h"
#include "grammar/control_literal.h"
#include "grammar/grammar_program.h"
#include "grammar/grammar_states.h"

namespace foretoken::calls {

class FormTesting {
 public:
  using Parts = std::vector<AnswerPart>;

  FormTesting(std::string_view name, std::vector<std::string> marks, ControlTokens control)
      : row_(RowOf(name)), marks_(std::move(marks)), control_(std::move(control)) {}

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

  // The parts of an answer, however it is divided.
  Parts Read(const std::string& answer, const std::vector<Tool>& tools) const {
    const std::string text =
        WithMarks(answer, [](const std::string& mark, Token) { return ControlText(mark); });
    const Parts whole = ReadPieces(text, text.size() + 1, tools);
    for (std::size_t piece = 1; piece < text.size(); ++piece)
      EXPECT_EQ(ReadPieces(text, piece, tools), whole) << row_.name << " " << piece << answer;
    return whole;
  }

  AnswerGrammar Grammar(const ToolUse& use) const {
    auto grammar = row_.grammar(use, control_);
    EXPECT_TRUE(grammar) << grammar.error().message;
    return grammar ? *grammar : AnswerGrammar{"root ::= \"\"\n"};
  }

  // Whether a grammar takes a whole answer.
  bool Takes(const std::string& gbnf, const std::string& answer) const {
    const std::string text = WithMarks(
        answer, [](const std::string&, Token token) { return grammar::ControlLiteral(token); });
    auto program = grammar::CompileGbnf(gbnf);
    EXPECT_TRUE(program) << program.error().message << "\n" << gbnf;
    if (!program) return false;
    grammar::GrammarStates states(*std::move(program));
    grammar::GrammarStates::State state = states.Start();
    for (const char c : text) {
      if (state == grammar::GrammarStates::kOver) return false;
      state = states.Next(state, static_cast<std::uint8_t>(c));
    }
    return state != grammar::GrammarStates::kOver && states.CanEnd(state);
  }

 private:
  static const CallFormat& RowOf(std::string_view name) {
    for (const CallFormat* const row : CallFormats())
      if (row->name == name) return *row;
    throw std::invalid_argument(std::string(name));
  }

  // The text with each mark that is a control token written in another way.
  template <typename Write>
  std::string WithMarks(std::string text, const Write& write) const {
    for (std::size_t i = 0; i < marks_.size(); ++i) {
      if (!control_.Has(marks_[i])) continue;
      const std::string written = write(marks_[i], static_cast<Token>(i));
      for (std::size_t at = 0; (at = text.find(marks_[i], at)) != text.npos; at += written.size())
        text.replace(at, marks_[i].size(), written);
    }
    return text;
  }

  Parts ReadPieces(std::string_view text, std::size_t piece, const std::vector<Tool>& tools) const {
    const auto reader = row_.reader(tools, control_);
    Parts all;
    const auto take = [&](const Parts& parts) {
      for (const AnswerPart& part : parts) Add(all, part.kind, part.text);
    };
    for (std::size_t i = 0; i < text.size(); i += piece) {
      Parts parts;
      reader->Read(text.substr(i, piece), parts);
      take(parts);
    }
    Parts parts;
    reader->End(parts);
    take(parts);
    return all;
  }

  const CallFormat& row_;
  std::vector<std::string> marks_;
  ControlTokens control_;
};

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
