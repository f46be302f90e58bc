// SPDX-License-Identifier: Apache-2.0
#include "calls/thought.h"

#include <utility>

#include "calls/answer_grammar.h"

namespace foretoken::calls {
namespace {

constexpr std::string_view kThinks = "<think>", kHasThought = "</think>";

}  // namespace

bool EndsInThought(std::string_view prompt) {
  while (!prompt.empty() && IsSpace(prompt.back())) prompt.remove_suffix(1);
  return prompt.ends_with(kThinks);
}

std::string BehindThought(std::string_view gbnf) {
  return "root ::= think-0\nthink-ws ::= [ \\n]? [ \\n]?\n" +
         TextUntil("think", kHasThought, "think-ws behind-root", false) + Prefixed(gbnf, "behind-");
}

AnswerReader::AnswerReader(bool begun, std::unique_ptr<CallReader> calls)
    : at_(begun ? At::kThought : At::kBegin),
      calls_(std::move(calls)),
      end_(std::string(kHasThought)) {}

void AnswerReader::Read(std::string_view text, std::vector<AnswerPart>& parts) {
  std::size_t i = 0;
  while (i < text.size() && at_ != At::kAnswer) Step(text[i++], parts);
  Answer(text.substr(i), parts);
}

void AnswerReader::End(std::vector<AnswerPart>& parts) {
  if (at_ == At::kBegin) Answer(std::exchange(held_, {}), parts);
  if (at_ == At::kThought && thought_) Add(parts, AnswerPart::Kind::kThought, end_.Take());
  if (calls_ != nullptr) calls_->End(parts);
}

void AnswerReader::Step(char c, std::vector<AnswerPart>& parts) {
  if (at_ == At::kBegin) {
    held_ += c;
    std::string_view mark = held_;
    while (!mark.empty() && IsSpace(mark.front())) mark.remove_prefix(1);
    if (kThinks.starts_with(mark)) {
      if (mark.size() < kThinks.size()) return;
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
