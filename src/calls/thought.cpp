// SPDX-License-Identifier: Apache-2.0
#include "calls/thought.h"

#include <fmt/format.h>

#include <utility>

#include "base/control_text.h"
#include "calls/answer_grammar.h"

namespace foretoken::calls {

const ThoughtMarks& ThoughtMarksOf(std::string_view chat_template) {
  for (const ThoughtMarks& marks : kThoughtMarks)
    if (marks.StandIn(chat_template)) return marks;
  return kThoughtMarks.front();
}

bool Thinks(std::string_view chat_template) {
  return ThoughtMarksOf(chat_template).StandIn(chat_template);
}

bool EndsInThought(std::string_view prompt, const ThoughtMarks& marks) {
  while (!prompt.empty() && IsSpace(prompt.back())) prompt.remove_suffix(1);
  return prompt.ends_with(marks.begin);
}

std::string BehindThought(std::string_view gbnf, const ThoughtMarks& marks,
                          const ControlTokens& control) {
  return "root ::= think-0\nthink-ws ::= [ \\n]? [ \\n]?\n" +
         TextUntil("think", marks.end, "think-ws behind-root", false, control) +
         Prefixed(gbnf, "behind-");
}

std::string PerhapsBehindThought(std::string_view gbnf, const ThoughtMarks& marks,
                                 const ControlTokens& control) {
  return fmt::format("root ::= behind-root | {} think-0\nthink-ws ::= [ \\n]? [ \\n]?\n",
                     control.InGrammar(marks.begin)) +
         TextUntil("think", marks.end, "think-ws behind-root", false, control) +
         Prefixed(gbnf, "behind-");
}

AnswerReader::AnswerReader(const AnswerForm& form, const ControlTokens& control,
                           std::unique_ptr<CallReader> calls)
    : at_(form.thoughts == nullptr ? At::kAnswer
          : form.begun             ? At::kThought
                                   : At::kBegin),
      divided_(form.divided),
      keeps_control_(form.keeps_control),
      calls_(std::move(calls)),
      begin_(form.thoughts != nullptr ? control.InText(form.thoughts->begin) : std::string()),
      end_(form.thoughts != nullptr ? control.InText(form.thoughts->end) : std::string()) {}

void AnswerReader::Read(std::string_view text, std::vector<AnswerPart>& parts) {
  std::vector<AnswerPart> made;
  std::size_t i = 0;
  while (i < text.size() && at_ != At::kAnswer) Step(text[i++], made);
  Answer(text.substr(i), made);
  PassOn(made, parts);
}

void AnswerReader::End(std::vector<AnswerPart>& parts) {
  std::vector<AnswerPart> made;
  if (at_ == At::kBegin) Answer(std::exchange(held_, {}), made);
  if (at_ == At::kThought && thought_) Add(made, AnswerPart::Kind::kThought, end_.Take());
  if (calls_ != nullptr) calls_->End(made);
  PassOn(made, parts);
}

// Thoughts that are not divided from the text count as text.
Thinking AnswerReader::thinking() const {
  if (at_ == At::kBegin) return Thinking::kLater;
  if (at_ == At::kThought) return Thinking::kNow;
  return divided_ && calls_ != nullptr ? calls_->thinking() : Thinking::kNever;
}

void AnswerReader::PassOn(std::vector<AnswerPart>& made, std::vector<AnswerPart>& parts) {
  for (const AnswerPart& part : made) {
    std::string text;
    for (const char c : part.text) {
      if (c == kControlBegin || c == kControlEnd)
        in_control_ = c == kControlBegin;
      else if (!in_control_ || keeps_control_)
        text += c;
    }
    const bool of_text = part.kind == AnswerPart::Kind::kThought && !divided_;
    Add(parts, of_text ? AnswerPart::Kind::kText : part.kind, text);
  }
}

void AnswerReader::Step(char c, std::vector<AnswerPart>& parts) {
  if (at_ == At::kBegin) {
    held_ += c;
    std::string_view mark = held_;
    while (!mark.empty() && IsSpace(mark.front())) mark.remove_prefix(1);
    if (begin_.starts_with(mark)) {
      if (mark.size() < begin_.size()) return;
      at_ = At::kThought;
      held_.clear();
      return;
    }
    at_ = At::kAnswer;
    return Answer(std::exchange(held_, {}), parts);
  }
  if (at_ == At::kThought) {
    if (!thought_ && IsSpace(c)) return;
    thought_ = true;
    std::string text;
    const bool ended = end_.Read(c, text);
    Add(parts, AnswerPart::Kind::kThought, text);
    if (ended) at_ = At::kBehind;
    return;
  }
  if (IsSpace(c)) return;
  at_ = At::kAnswer;
  Answer(std::string_view(&c, 1), parts);
}

void AnswerReader::Answer(std::string_view text, std::vector<AnswerPart>& parts) {
  if (calls_ != nullptr)
    calls_->Read(text, parts);
  else
    Add(parts, AnswerPart::Kind::kText, text);
}

}  // namespace foretoken::calls
