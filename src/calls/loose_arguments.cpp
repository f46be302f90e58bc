// SPDX-License-Identifier: Apache-2.0
#include "calls/loose_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "grammar/schema/json_tree.h"

namespace foretoken::calls {
namespace {

bool Closes(char c) {
  return c == ')' || c == ']' || c == '}';
}

// The JSON of a word of the notation: Python's constants and numbers, JSON's, or a text.
std::string WordAsJson(std::string word) {
  while (!word.empty() && IsSpace(word.back())) word.pop_back();
  if (word == "True") return "true";
  if (word == "False") return "false";
  if (word == "None") return "null";
  if (grammar::JsonTree::Parse(word)) return word;
  std::string number = word;
  number.erase(std::remove(number.begin(), number.end(), '_'), number.end());
  if (number.starts_with('+')) number.erase(0, 1);
  if (const std::size_t dot = number.find('.'); dot != number.npos) {
    if (dot + 1 == number.size()) number += '0';
    if (dot == 0 || number[dot - 1] == '-') number.insert(dot, "0");
  }
  if (!number.empty() && number != word && grammar::JsonTree::Parse(number)) return number;
  return '"' + InsideOfJsonString(word) + '"';
}

// What a letter behind a backslash means, as the inside of a JSON string; "": nothing of its own.
std::string_view Escaped(char c) {
  switch (c) {
    case 'n':
      return "\\n";
    case 't':
      return "\\t";
    case 'r':
      return "\\r";
    case 'b':
      return "\\b";
    case 'f':
      return "\\f";
    case 'a':
      return "\\u0007";
    case 'v':
      return "\\u000b";
    case '0':
      return "\\u0000";
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\'':
      return "'";
    case '/':
      return "/";
    default:
      return "";
  }
}

std::size_t HexDigits(char c) {
  return c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
}

std::string CodeAsJson(std::string_view digits) {
  std::uint32_t code = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
  if (code < 0x10000) return fmt::format("\\u{:04x}", code);
  if (code > 0x10FFFF) return "\\ufffd";
  code -= 0x10000;
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
}

}  // namespace

LooseArguments::LooseArguments(std::string quote) : quote_(std::move(quote)), quote_end_(quote_) {}

void LooseArguments::Begin(std::vector<Parameter> parameters, std::vector<AnswerPart>& parts) {
  parameters_ = std::move(parameters);
  levels_.clear();
  word_.clear();
  Open(true, parts);
}

bool LooseArguments::Read(char c, std::vector<AnswerPart>& parts) {
  switch (at_) {
    case At::kKey:
      ReadKey(c, parts);
      break;
    case At::kValue:
      ReadValue(c, parts);
      break;
    case At::kWord:
      ReadWord(c, parts);
      break;
    case At::kString:
      ReadString(c, parts);
      break;
    case At::kMarked:
      ReadMarked(c, parts);
      break;
    case At::kBehind:
      ReadBehind(c, parts);
      break;
  }
  return levels_.empty();
}

// A bare word up to its separator, a string, or the value of an argument without a name.
void LooseArguments::ReadKey(char c, std::vector<AnswerPart>& parts) {
  if (word_.empty()) {
    if (IsSpace(c) || c == ',') return;
    if (Closes(c)) return Close(parts);
    const bool call = levels_.size() == 1;
    if (c == '"' || c == '\'') {
      if (call && quote_.empty()) return AddPosition(parts), ReadValue(c, parts);
      at_ = At::kString, end_ = c, of_key_ = true;
      return;
    }
    if (call && (c == '[' || c == '(' || c == '{')) return AddPosition(parts), ReadValue(c, parts);
  }
  if (c == ',' || Closes(c)) {  // no separator came, so it is a value
    const std::string value = std::exchange(word_, {});
    if (levels_.size() == 1)
      AddPosition(parts);
    else
      AddKey(value, parts);
    word_ = value;
    AddWord(parts);
    return ReadBehind(c, parts);
  }
  if (c == ':' || (c == '=' && levels_.size() == 1)) {
    while (!word_.empty() && IsSpace(word_.back())) word_.pop_back();
    AddKey(std::exchange(word_, {}), parts);
    return;
  }
  word_ += c;
  if (word_ == quote_) {
    word_.clear();
    at_ = At::kMarked, of_key_ = true;
  }
}

void LooseArguments::ReadValue(char c, std::vector<AnswerPart>& parts) {
  if (IsSpace(c)) return;
  if (Closes(c) || c == ',') {
    if (levels_.back().object) Say("null", parts);  // a key without a value
    return ReadBehind(c, parts);
  }
  BeginValue(parts);
  of_key_ = false;
  if (c == '[' || c == '(') return Open(false, parts);
  if (c == '{') return Open(true, parts);
  if (c == '"' || c == '\'') {
    at_ = At::kString, end_ = c;
    return Say("\"", parts);
  }
  word_.clear();
  at_ = At::kWord;
  ReadWord(c, parts);
}

void LooseArguments::ReadWord(char c, std::vector<AnswerPart>& parts) {
  const bool of_mark = !word_.empty() && quote_.starts_with(word_);
  if (!of_mark && (c == ',' || Closes(c))) {
    AddWord(parts);
    return ReadBehind(c, parts);
  }
  word_ += c;
  if (word_ != quote_) return;
  word_.clear();
  at_ = At::kMarked;
  Say("\"", parts);
}

void LooseArguments::ReadString(char c, std::vector<AnswerPart>& parts) {
  if (!escape_.empty()) return ReadEscape(c, parts);
  if (c == '\\') {
    escape_ = c;
  } else if (c == end_) {
    EndString(parts);
  } else {
    const std::string json = InsideOfJsonString(std::string_view(&c, 1));
    if (of_key_)
      word_ += json;
    else
      Say(json, parts);
  }
}

void LooseArguments::ReadEscape(char c, std::vector<AnswerPart>& parts) {
  escape_ += c;
  const std::size_t digits = HexDigits(escape_[1]);
  const bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  std::string json;
  if (digits > 0) {
    if (escape_.size() > 2 && !hex)
      json = InsideOfJsonString(escape_);  // no escape after all
    else if (escape_.size() < 2 + digits)
      return;
    else
      json = CodeAsJson(std::string_view(escape_).substr(2));
  } else {
    json = Escaped(c);
    if (json.empty() && c != '\n') json = InsideOfJsonString(escape_);
  }
  escape_.clear();
  if (of_key_)
    word_ += json;
  else
    Say(json, parts);
}

void LooseArguments::ReadMarked(char c, std::vector<AnswerPart>& parts) {
  std::string text;
  const bool ended = quote_end_.Read(c, text);
  if (ended) text += quote_end_.Take();
  const std::string json = InsideOfJsonString(text);
  if (of_key_)
    word_ += json;
  else
    Say(json, parts);
  if (ended) EndString(parts);
}

void LooseArguments::EndString(std::vector<AnswerPart>& parts) {
  at_ = At::kBehind;
  if (!of_key_) return Say("\"", parts);
  // It is escaped already.
  Say(fmt::format("{}\"{}\": ", levels_.back().n++ > 0 ? ", " : "", std::exchange(word_, {})),
      parts);
}

void LooseArguments::ReadBehind(char c, std::vector<AnswerPart>& parts) {
  if (Closes(c)) return Close(parts);
  if (of_key_ && (c == ':' || c == '=')) {
    of_key_ = false;
    at_ = At::kValue;
  } else if (c == ',') {
    at_ = levels_.back().object ? At::kKey : At::kValue;
    word_.clear();
  }
}

// Elements of lists are counted here, members where their keys come.
void LooseArguments::BeginValue(std::vector<AnswerPart>& parts) {
  Level& level = levels_.back();
  if (!level.object && level.n++ > 0) Say(", ", parts);
}

void LooseArguments::AddKey(std::string_view key, std::vector<AnswerPart>& parts) {
  Say(fmt::format("{}\"{}\": ", levels_.back().n++ > 0 ? ", " : "", InsideOfJsonString(key)),
      parts);
  at_ = At::kValue;
}

void LooseArguments::AddPosition(std::vector<AnswerPart>& parts) {
  const auto n = static_cast<std::size_t>(levels_.back().n);
  AddKey(n < parameters_.size() ? parameters_[n].name : fmt::format("argument{}", n + 1), parts);
}

void LooseArguments::AddWord(std::vector<AnswerPart>& parts) {
  Say(WordAsJson(std::exchange(word_, {})), parts);
  at_ = At::kBehind;
}

void LooseArguments::Open(bool object, std::vector<AnswerPart>& parts) {
  levels_.push_back({.object = object});
  of_key_ = false;
  Say(object ? "{" : "[", parts);
  at_ = object ? At::kKey : At::kValue;
}

void LooseArguments::Close(std::vector<AnswerPart>& parts) {
  Say(levels_.back().object ? "}" : "]", parts);
  levels_.pop_back();
  of_key_ = false;
  at_ = At::kBehind;
}

void LooseArguments::Say(std::string_view json, std::vector<AnswerPart>& parts) {
  Add(parts, AnswerPart::Kind::kArguments, json);
}

}  // namespace foretoken::calls
