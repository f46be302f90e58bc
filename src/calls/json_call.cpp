// SPDX-License-Identifier: Apache-2.0
#include "calls/json_call.h"

#include "calls/marked_text.h"
#include "grammar/schema/json_tree.h"

namespace foretoken::calls {
namespace {

using grammar::JsonTree;

// The text of a JSON string; nothing if it is another value.
bool ReadText(const std::string& json, std::string& text) {
  const auto tree = JsonTree::Parse(json);
  if (!tree || !(*tree)[JsonTree::kRoot].is_string()) return false;
  text = (*tree)[JsonTree::kRoot].text();
  return true;
}

bool IsName(const std::string& key) {
  return key == "name" || key == "tool_name";
}

bool IsArguments(const std::string& key) {
  return key == "arguments" || key == "parameters";
}

}  // namespace

JsonCall::State JsonCall::Read(char c, std::vector<AnswerPart>& parts) {
  if (!named_) raw_ += c;
  switch (at_) {
    case At::kBegin:
      at_ = At::kKey;
      return c == '{' ? State::kOpen : Broken();
    case At::kKey:
    case At::kInKey:
    case At::kColon:
      return ReadKey(c, parts);
    case At::kValue:
    case At::kInValue:
      return ReadValue(c, parts);
    case At::kBehind:
      break;
  }
  if (c == '}') return End(parts);
  if (c == ',') at_ = At::kKey;
  return c == ',' || IsSpace(c) ? State::kOpen : Broken();
}

JsonCall::State JsonCall::ReadKey(char c, std::vector<AnswerPart>& parts) {
  if (at_ == At::kInKey) {
    if (c == '"' && !escaped_)
      at_ = At::kColon;
    else
      key_ += c;
    escaped_ = c == '\\' && !escaped_;
    return State::kOpen;
  }
  if (IsSpace(c)) return State::kOpen;
  if (at_ == At::kColon) {
    at_ = At::kValue;
    value_.clear();
    depth_ = 0, in_text_ = escaped_ = false;
    return c == ':' ? State::kOpen : Broken();
  }
  if (c == '}') return End(parts);
  if (c != '"') return Broken();
  at_ = At::kInKey;
  key_.clear();
  escaped_ = false;
  return State::kOpen;
}

JsonCall::State JsonCall::ReadValue(char c, std::vector<AnswerPart>& parts) {
  if (at_ == At::kValue) {
    if (IsSpace(c)) return State::kOpen;
    at_ = At::kInValue;
  }
  const bool ends_scalar = depth_ == 0 && !in_text_ && (c == ',' || c == '}' || IsSpace(c));
  if (ends_scalar) {
    EndValue(parts);
    at_ = At::kBehind;
    if (c == '}') return End(parts);
    if (c == ',') at_ = At::kKey;
    return State::kOpen;
  }
  const bool streams =
      IsArguments(key_) && named_ && (value_.empty() ? c == '{' : value_[0] == '{');
  if (streams) {
    if (value_.empty()) value_ = "{";  // says what it is
    PassOn(std::string_view(&c, 1), parts);
  } else if (IsName(key_) || IsArguments(key_)) {
    value_ += c;
  }
  if (in_text_) {
    if (c == '"' && !escaped_) in_text_ = false;
    escaped_ = c == '\\' && !escaped_;
  } else if (c == '"') {
    in_text_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
  } else if (c == '}' || c == ']') {
    --depth_;
  }
  // Objects, lists and texts end with their last character.
  if (depth_ > 0 || in_text_ || (c != '"' && c != '}' && c != ']')) return State::kOpen;
  EndValue(parts);
  at_ = At::kBehind;
  return State::kOpen;
}

void JsonCall::EndValue(std::vector<AnswerPart>& parts) {
  std::string text;
  if (IsName(key_) && !named_ && ReadText(value_, text) && !text.empty()) {
    named_ = true;
    raw_.clear();
    Add(parts, AnswerPart::Kind::kName, text);
    PassOn(waiting_, parts);
    waiting_.clear();
  } else if (IsArguments(key_) && !has_arguments_) {
    // Some models write the object as a text.
    if (value_.starts_with('"') && ReadText(value_, text)) value_ = text;
    if (named_)
      PassOn(value_, parts);
    else
      waiting_ = value_;
  }
}

void JsonCall::PassOn(std::string_view arguments, std::vector<AnswerPart>& parts) {
  has_arguments_ |= !arguments.empty();
  Add(parts, AnswerPart::Kind::kArguments, arguments);
}

JsonCall::State JsonCall::End(std::vector<AnswerPart>& parts) {
  if (!named_) return State::kBroken;
  if (!has_arguments_) PassOn("{}", parts);
  return State::kEnded;
}

}  // namespace foretoken::calls
