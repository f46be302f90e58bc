// SPDX-License-Identifier: Apache-2.0
// calls/thought.h: what a model thinks before it answers, apart from the answer.
//
// A thought stands between two marks, <think> and </think> or those of the model's family, at the
// beginning of an answer. Templates may write the first mark themselves; then the answer begins
// within the thought.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thought_marks.h"
#include "calls/call_format.h"
#include "calls/marked_text.h"

namespace foretoken::calls {

// The marks of a template's model; <think> where it has none.
const ThoughtMarks& ThoughtMarksOf(std::string_view chat_template);

// Whether a template speaks of them.
bool Thinks(std::string_view chat_template);

// Whether a prompt ends within a thought.
bool EndsInThought(std::string_view prompt, const ThoughtMarks& marks);

// The answers of a grammar, each behind the end of the thought in which it begins, which must come.
std::string BehindThought(std::string_view gbnf, const ThoughtMarks& marks,
                          const ControlTokens& control);

// The answers of a grammar, each behind a thought or not.
std::string PerhapsBehindThought(std::string_view gbnf, const ThoughtMarks& marks,
                                 const ControlTokens& control);

// How answers are to be read.
struct AnswerForm {
  // Null: thoughts are part of the text, or the calls' reader divides them itself.
  const ThoughtMarks* thoughts = nullptr;
  bool begun = false;   // answers begin within a thought
  bool divided = true;  // thoughts are parts of their own, whoever finds them; otherwise text
  // Control tokens that are no marks stand in the text by their names; otherwise they are left out.
  bool keeps_control = false;
};

// Reads an answer: thoughts, and in what follows them text and calls. White space around a thought is
// left out. Control tokens come as base/control_text.h says and never leave so.
class AnswerReader final : public CallReader {
 public:
  // calls: reads the rest; null: it is text.
  AnswerReader(const AnswerForm& form, const ControlTokens& control,
               std::unique_ptr<CallReader> calls);

  void Read(std::string_view text, std::vector<AnswerPart>& parts) override;
  void End(std::vector<AnswerPart>& parts) override;
  Thinking thinking() const override;

 private:
  enum class At { kBegin, kThought, kBehind, kAnswer };

  void Step(char c, std::vector<AnswerPart>& parts);
  void Answer(std::string_view text, std::vector<AnswerPart>& parts);
  void PassOn(std::vector<AnswerPart>& made, std::vector<AnswerPart>& parts);

  At at_;
  const bool divided_, keeps_control_;
  std::unique_ptr<CallReader> calls_;
  const std::string begin_;
  MarkFinder end_;
  std::string held_;         // at the beginning, while it may be the mark
  bool thought_ = false;     // it has a character that is no white space
  bool in_control_ = false;  // within the name of a control token that is no mark
};

}  // namespace foretoken::calls
