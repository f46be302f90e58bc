// SPDX-License-Identifier: Apache-2.0
#include "calls/json_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calls/tool_parameters.h"

namespace foretoken::calls {
namespace {

constexpr auto kPassOn = AnswerPart::Kind::kArguments;

std::size_t DigitsAt(std::string_view text, std::size_t at) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
  return end - std::min(at, end);
}

// A number of Python as JSON; empty: it is none.
std::string NumberOfWord(std::string_view word) {
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const auto is_digit = [&](std::size_t n) { return n < word.size() && DigitsAt(word, n) > 0; };
    if (word[i] == '_' && i > 0 && is_digit(i - 1) && is_digit(i + 1)) continue;
    text += word[i];
  }
  if (text.starts_with('+')) text.erase(0, 1);
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t n_whole = DigitsAt(text, at);
  if (n_whole > 1 && text[at] == '0') return {};
  std::size_t n_fraction = 0;
  if (at + n_whole < text.size() && text[at + n_whole] == '.') {
    const std::size_t point = at + n_whole;
    n_fraction = DigitsAt(text, point + 1);
    if (n_whole + n_fraction == 0) return {};
    if (n_fraction == 0) text.insert(point + 1, "0");
    if (n_whole == 0) text.insert(point, "0");
    at += std::max<std::size_t>(n_whole, 1) + 1 + std::max<std::size_t>(n_fraction, 1);
  } else if (n_whole == 0) {
    return {};
  } else {
    at += n_whole;
  }
  if (at == text.size()) return text;
  if (text[at] != 'e' && text[at] != 'E') return {};
  ++at;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  const std::size_t n_exponent = DigitsAt(text, at);
  return n_exponent > 0 && at + n_exponent == text.size() ? text : std::string();
}

std::string JsonOfWord(std::string_view word) {
  if (word.empty() || word == "None" || word == "null") return "null";
  if (word == "True" || word == "true") return "true";
  if (word == "False" || word == "false") return "false";
  std::string number = NumberOfWord(word);
  return number.empty() ? '"' + InsideOfJsonString(word) + '"' : number;
}

}  // namespace

void JsonArguments::BeginText(std::vector<AnswerPart>& parts) {
  collects_ = n_left_out_ == 0 && before_key();
  if (collects_) key_.clear();
  passes_on_ = !collects_ && BeginValue(parts);
  if (passes_on_) Add(parts, kPassOn, "\"");
}

void JsonArguments::AddText(std::string_view inside, std::vector<AnswerPart>& parts) {
  if (passes_on_) Add(parts, kPassOn, inside);
  if (collects_) key_ += inside;
}

void JsonArguments::EndText(std::vector<AnswerPart>& parts) {
  if (std::exchange(passes_on_, false)) {
    Add(parts, kPassOn, "\"");
    at_ = At::kBehind;
  }
  if (!std::exchange(collects_, false)) return;
  key_value_ = '"' + key_ + '"';
  at_ = At::kKey;
}

void JsonArguments::Word(std::string_view word, std::vector<AnswerPart>& parts) {
  if (n_left_out_ > 0) return;
  if (before_key()) {
    key_ = InsideOfJsonString(word);
    key_value_ = JsonOfWord(word);
    at_ = At::kKey;
  } else if (BeginValue(parts)) {
    Add(parts, kPassOn, JsonOfWord(word));
    at_ = At::kBehind;
  }
}

void JsonArguments::Separator(std::vector<AnswerPart>& parts) {
  if (n_left_out_ > 0 || at_ != At::kKey) return;
  BeginMember(key_, parts);
  at_ = At::kValue;
}

void JsonArguments::Comma(std::vector<AnswerPart>& parts) {
  if (n_left_out_ == 0) EndItem(parts);
}

void JsonArguments::Open(bool list, std::vector<AnswerPart>& parts) {
  if (n_left_out_ == 0 && before_key()) BeginUnnamed(parts);
  if (!BeginValue(parts)) {
    ++n_left_out_;
    return;
  }
  Add(parts, kPassOn, list ? "[" : "{");
  kinds_.push_back(list ? Kind::kList : Kind::kObject);
  at_ = At::kItem;
  first_ = true;
}

bool JsonArguments::Close(std::vector<AnswerPart>& parts) {
  if (n_left_out_ > 0) {
    --n_left_out_;
    return false;
  }
  EndItem(parts);
  const bool empty = first_ && Innermost() == Kind::kArguments;
  Add(parts, kPassOn, empty ? "{}" : Innermost() == Kind::kList ? "]" : "}");
  kinds_.pop_back();
  at_ = At::kBehind;
  first_ = false;
  return kinds_.empty();
}

// Whether a value may stand here; then what precedes it has been written.
bool JsonArguments::BeginValue(std::vector<AnswerPart>& parts) {
  if (n_left_out_ > 0) return false;
  if (at_ == At::kItem && Innermost() == Kind::kList)
    BeginItem(parts);
  else if (at_ != At::kValue)
    return false;
  return true;
}

void JsonArguments::BeginItem(std::vector<AnswerPart>& parts) {
  if (!std::exchange(first_, false))
    Add(parts, kPassOn, ", ");
  else if (Innermost() == Kind::kArguments)
    Add(parts, kPassOn, "{");
}

void JsonArguments::BeginMember(std::string_view key, std::vector<AnswerPart>& parts) {
  BeginItem(parts);
  Add(parts, kPassOn, fmt::format("\"{}\": ", key));
}

// A value without a key begins where keys are.
void JsonArguments::BeginUnnamed(std::vector<AnswerPart>& parts) {
  std::string name;
  if (Innermost() == Kind::kArguments) {
    name = n_unnamed_ < names_.size() ? names_[n_unnamed_] : fmt::format("arg{}", n_unnamed_ + 1);
    ++n_unnamed_;
  }
  BeginMember(InsideOfJsonString(name), parts);
  at_ = At::kValue;
}

void JsonArguments::EndItem(std::vector<AnswerPart>& parts) {
  if (at_ == At::kKey && Innermost() == Kind::kArguments) {
    BeginUnnamed(parts);
    Add(parts, kPassOn, key_value_);
  } else if (at_ == At::kKey) {
    BeginMember(key_, parts);
    Add(parts, kPassOn, "null");
  } else if (at_ == At::kValue) {
    Add(parts, kPassOn, "null");
  }
  at_ = At::kItem;
}

}  // namespace foretoken::calls
