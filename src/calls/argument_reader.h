// SPDX-License-Identifier: Apache-2.0
// calls/argument_reader.h: reads the arguments of a call in a notation that is not JSON, character by
// character, and passes them on as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/control_tokens.h"
#include "calls/json_arguments.h"
#include "calls/marked_text.h"
#include "calls/quoted_text.h"
#include "calls/tool_use.h"

namespace foretoken::calls {

struct ArgumentSyntax {
  char separator;              // behind an argument's name; members of objects have a colon
  std::string_view openers;    // of lists and objects
  std::string_view quotes;     // of texts with escapes
  std::string_view mark = {};  // around texts without escapes; "": there are none
};

class ArgumentReader {
 public:
  enum class State {
    kOpen,
    kEnded,   // the bracket behind the arguments was the last character
    kBroken,  // a control token came that is no part of arguments; see Control
  };

  ArgumentReader(const ArgumentSyntax& syntax, const ControlTokens& control);

  // Arguments begin, behind their bracket. names: the tool's parameters, in order.
  void Begin(std::vector<std::string> names);
  State Read(char c, std::vector<AnswerPart>& parts);
  // Once it is kBroken: the control token, as it came.
  const std::string& control() const { return control_; }

 private:
  enum class At { kBetween, kWord, kQuoted, kMark, kMarked, kControl };

  bool ReadBetween(char c, std::vector<AnswerPart>& parts);
  bool Punctuate(char c, std::vector<AnswerPart>& parts);
  bool ReadWord(char c, std::vector<AnswerPart>& parts);
  bool ReadQuoted(char c, std::vector<AnswerPart>& parts);
  bool ReadMark(char c, std::vector<AnswerPart>& parts);
  void ReadMarked(char c, std::vector<AnswerPart>& parts);
  State ReadControl(char c, std::vector<AnswerPart>& parts);
  void BeginQuoted(char quote, bool raw, std::vector<AnswerPart>& parts);
  void EndWord(std::vector<AnswerPart>& parts);
  bool Separates(char c) const;

  const ArgumentSyntax& syntax_;
  const std::string mark_;  // as it stands in the answer
  JsonArguments json_;
  At at_ = At::kBetween, before_control_ = At::kBetween;
  QuotedText quoted_;
  MarkFinder mark_end_;
  std::string word_;
  std::size_t word_depth_ = 0;  // brackets that are open in the word
  std::size_t n_mark_ = 0;      // characters of the mark that came
  std::string control_;
};

}  // namespace foretoken::calls
