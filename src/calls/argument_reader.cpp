// SPDX-License-Identifier: Apache-2.0
#include "calls/argument_reader.h"

#include <utility>

#include "base/control_text.h"
#include "calls/row_text.h"
#include "calls/tool_parameters.h"

namespace foretoken::calls {
namespace {

bool IsOneOf(char c, std::string_view characters) {
  return characters.find(c) != characters.npos;
}

// Letters that stand before the quote of a text.
bool IsTextPrefix(std::string_view word) {
  return word.size() <= 2 && word.find_first_not_of("rbfuRBFU") == word.npos;
}

}  // namespace

ArgumentReader::ArgumentReader(const ArgumentSyntax& syntax, const ControlTokens& control)
    : syntax_(syntax), mark_(control.InText(syntax.mark)), mark_end_(mark_) {}

void ArgumentReader::Begin(std::vector<std::string> names) {
  json_ = JsonArguments(std::move(names));
  at_ = At::kBetween;
}

ArgumentReader::State ArgumentReader::Read(char c, std::vector<AnswerPart>& parts) {
  if (at_ == At::kControl) return ReadControl(c, parts);
  if (c == kControlBegin) {
    before_control_ = std::exchange(at_, At::kControl);
    control_ = c;
    return State::kOpen;
  }
  bool ended = false;
  switch (at_) {
    case At::kBetween:
      ended = ReadBetween(c, parts);
      break;
    case At::kWord:
      ended = ReadWord(c, parts);
      break;
    case At::kQuoted:
      ended = ReadQuoted(c, parts);
      break;
    case At::kMark:
      ended = ReadMark(c, parts);
      break;
    case At::kMarked:
      ReadMarked(c, parts);
      break;
    case At::kControl:
      break;
  }
  return ended ? State::kEnded : State::kOpen;
}

bool ArgumentReader::Separates(char c) const {
  return c == (json_.in_arguments() ? syntax_.separator : ':');
}

bool ArgumentReader::ReadBetween(char c, std::vector<AnswerPart>& parts) {
  if (IsSpace(c)) return false;
  if (json_.has_key() && Separates(c)) {
    json_.Separator(parts);
  } else if (IsOneOf(c, ",)]}") || IsOneOf(c, syntax_.openers)) {
    return Punctuate(c, parts);
  } else if (IsOneOf(c, syntax_.quotes)) {
    BeginQuoted(c, false, parts);
  } else if (!mark_.empty() && c == mark_.front()) {
    n_mark_ = 1;
    at_ = At::kMark;
  } else {
    word_ = c;
    word_depth_ = 0;
    at_ = At::kWord;
  }
  return false;
}

bool ArgumentReader::Punctuate(char c, std::vector<AnswerPart>& parts) {
  if (c == ',') json_.Comma(parts);
  if (IsOneOf(c, "([{")) json_.Open(c != '{', parts);
  return IsOneOf(c, ")]}") && json_.Close(parts);
}

bool ArgumentReader::ReadWord(char c, std::vector<AnswerPart>& parts) {
  const bool separates = json_.before_key() && Separates(c);
  if (word_depth_ == 0 && (separates || IsOneOf(c, ",)]}"))) {
    EndWord(parts);
    return ReadBetween(c, parts);
  }
  if (IsOneOf(c, syntax_.quotes) && IsTextPrefix(word_)) {
    BeginQuoted(c, word_.find_first_of("rR") != word_.npos, parts);
    return false;
  }
  if (IsOneOf(c, "([{")) ++word_depth_;
  if (IsOneOf(c, ")]}")) --word_depth_;
  word_ += c;
  return false;
}

void ArgumentReader::EndWord(std::vector<AnswerPart>& parts) {
  json_.Word(WithoutOuterSpaces(word_), parts);
  at_ = At::kBetween;
}

void ArgumentReader::BeginQuoted(char quote, bool raw, std::vector<AnswerPart>& parts) {
  quoted_ = QuotedText(quote, raw);
  json_.BeginText(parts);
  at_ = At::kQuoted;
}

bool ArgumentReader::ReadQuoted(char c, std::vector<AnswerPart>& parts) {
  std::string inside;
  const QuotedText::State state = quoted_.Read(c, inside);
  json_.AddText(inside, parts);
  if (state == QuotedText::State::kOpen) return false;
  json_.EndText(parts);
  at_ = At::kBetween;
  return state == QuotedText::State::kEndedBefore && ReadBetween(c, parts);
}

// The mark before a text, which is itself a text.
bool ArgumentReader::ReadMark(char c, std::vector<AnswerPart>& parts) {
  if (c == mark_[n_mark_]) {
    if (++n_mark_ < mark_.size()) return false;
    json_.BeginText(parts);
    at_ = At::kMarked;
    return false;
  }
  word_ = mark_.substr(0, n_mark_);
  word_depth_ = 0;
  at_ = At::kWord;
  return ReadWord(c, parts);
}

void ArgumentReader::ReadMarked(char c, std::vector<AnswerPart>& parts) {
  std::string text;
  const bool ended = mark_end_.Read(c, text);
  if (ended) text += mark_end_.Take();
  json_.AddText(InsideOfJsonString(text), parts);
  if (!ended) return;
  json_.EndText(parts);
  at_ = At::kBetween;
}

ArgumentReader::State ArgumentReader::ReadControl(char c, std::vector<AnswerPart>& parts) {
  control_ += c;
  if (c != kControlEnd) return State::kOpen;
  at_ = before_control_;
  if (control_ != mark_) return State::kBroken;
  if (at_ == At::kMarked) {
    json_.AddText(InsideOfJsonString(mark_end_.Take()), parts);
    json_.EndText(parts);
    at_ = At::kBetween;
    return State::kOpen;
  }
  if (at_ == At::kWord) EndWord(parts);
  json_.BeginText(parts);
  at_ = At::kMarked;
  return State::kOpen;
}

}  // namespace foretoken::calls
