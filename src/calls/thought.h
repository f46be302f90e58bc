// SPDX-License-Identifier: Apache-2.0
// calls/thought.h: what a model thinks before it answers, apart from the answer.
//
// A thought stands between <think> and </think>, at the beginning of an answer. Templates may write
// the first mark themselves; then the answer begins within the thought.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "calls/call_format.h"
#include "calls/marked_text.h"

namespace foretoken::calls {

// Whether a prompt ends within a thought.
bool EndsInThought(std::string_view prompt);

// The answers of a grammar, each behind the end of the thought in which it begins, which must come.
std::string BehindThought(std::string_view gbnf);

// Reads an answer: thoughts, and in what follows them text and calls. White space around a thought is
// left out.
class AnswerReader final : public CallReader {
 public:
  // begun: the answer begins within a thought. calls: reads the rest; null: it is text.
  AnswerReader(bool begun, std::unique_ptr<CallReader> calls);

  void Read(std::string_view text, std::vector<AnswerPart>& parts) override;
  void End(std::vector<AnswerPart>& parts) override;

 private:
  enum class At { kBegin, kThought, kBehind, kAnswer };

  void Step(char c, std::vector<AnswerPart>& parts);
  void Answer(std::string_view text, std::vector<AnswerPart>& parts);

  At at_;
  std::unique_ptr<CallReader> calls_;
  MarkFinder end_;
  std::string held_;      // at the beginning, while it may be the mark
  bool thought_ = false;  // it has a character that is no white space
};

}  // namespace foretoken::calls
