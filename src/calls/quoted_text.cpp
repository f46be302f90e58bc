// SPDX-License-Identifier: Apache-2.0
#include "calls/quoted_text.h"

#include <string_view>
#include <utility>

#include "calls/marked_text.h"
#include "calls/tool_parameters.h"

namespace foretoken::calls {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool IsHighSurrogate(char32_t code) {
  return code >= 0xD800 && code < 0xDC00;
}
bool IsLowSurrogate(char32_t code) {
  return code >= 0xDC00 && code < 0xE000;
}

std::string Utf8Of(char32_t c) {
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) return {static_cast<char>(c)};
  if (c < 0x800) return {static_cast<char>(0xC0 | (c >> 6)), tail(0)};
  if (c < 0x10000) return {static_cast<char>(0xE0 | (c >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (c >> 18)), tail(12), tail(6), tail(0)};
}

// The value of a digit; -1: it is none.
int DigitOf(char c, int base) {
  int digit = -1;
  if (c >= '0' && c <= '9') digit = c - '0';
  if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
  if (c >= 'A' && c <= 'F') digit = c - 'A' + 10;
  return digit < base ? digit : -1;
}

// The character behind a backslash, and the one that they stand for.
constexpr std::pair<char, char> kSimpleEscapes[] = {
    {'n', '\n'}, {'t', '\t'}, {'r', '\r'},  {'b', '\b'},  {'f', '\f'}, {'a', '\a'},
    {'v', '\v'}, {'"', '"'},  {'\'', '\''}, {'\\', '\\'}, {'/', '/'}};

}  // namespace

QuotedText::State QuotedText::Read(char c, std::string& inside) {
  switch (at_) {
    case At::kText:
      return ReadText(c, inside);
    case At::kQuoted:
      return ReadQuoted(c, inside);
    case At::kDigits:
      return ReadDigits(c, inside);
    case At::kBackslash:
      ReadEscape(c, inside);
  }
  return State::kOpen;
}

QuotedText::State QuotedText::ReadText(char c, std::string& inside) {
  if (c == quote_ && triple_) return ++n_quotes_ == 3 ? State::kEnded : State::kOpen;
  if (c == quote_) {
    at_ = At::kQuoted;
    waiting_.clear();
    return State::kOpen;
  }
  AddText(std::string(static_cast<std::size_t>(std::exchange(n_quotes_, 0)), quote_), inside);
  empty_ = false;
  if (c == '\\')
    at_ = At::kBackslash;
  else
    AddText(std::string(1, c), inside);
  return State::kOpen;
}

QuotedText::State QuotedText::ReadQuoted(char c, std::string& inside) {
  if (c == quote_ && empty_ && waiting_.empty()) {
    triple_ = true;
    at_ = At::kText;
    return State::kOpen;
  }
  if (IsSpace(c)) {
    waiting_ += c;
    return State::kOpen;
  }
  if (std::string_view(",)]}:=").find(c) != std::string_view::npos) return State::kEndedBefore;
  AddText(quote_ + std::exchange(waiting_, {}), inside);
  empty_ = false;
  at_ = At::kText;
  return ReadText(c, inside);
}

void QuotedText::ReadEscape(char c, std::string& inside) {
  at_ = At::kText;
  if (raw_) return AddText(std::string("\\") + c, inside);
  if (c == '\n') return;  // the line goes on
  for (const auto& [letter, meaning] : kSimpleEscapes)
    if (c == letter) return AddText(std::string(1, meaning), inside);
  if (c == 'x') return BeginDigits(16, 2, 2, "\\x");
  if (c == 'u') return BeginDigits(16, 4, 4, "\\u");
  if (c == 'U') return BeginDigits(16, 8, 8, "\\U");
  if (DigitOf(c, 8) < 0) return AddText(std::string("\\") + c, inside);
  BeginDigits(8, 1, 3, "\\");
  ReadDigits(c, inside);
}

void QuotedText::BeginDigits(int base, int least, int most, std::string written) {
  at_ = At::kDigits;
  base_ = base, least_ = least, most_ = most;
  escape_ = std::move(written);
  n_digits_ = 0;
  code_ = 0;
}

QuotedText::State QuotedText::ReadDigits(char c, std::string& inside) {
  const int digit = DigitOf(c, base_);
  if (digit >= 0) {
    escape_ += c;
    code_ = code_ * static_cast<char32_t>(base_) + static_cast<char32_t>(digit);
    ++n_digits_;
  }
  if (digit >= 0 && n_digits_ < most_) return State::kOpen;
  at_ = At::kText;
  if (n_digits_ >= least_)
    AddCode(code_, inside);
  else
    AddText(escape_, inside);
  return digit >= 0 ? State::kOpen : ReadText(c, inside);
}

void QuotedText::AddText(const std::string& text, std::string& inside) {
  if (text.empty()) return;
  if (std::exchange(high_, 0) != 0) inside += Utf8Of(kReplacement);
  inside += InsideOfJsonString(text);
}

void QuotedText::AddCode(char32_t code, std::string& inside) {
  if (high_ != 0 && IsLowSurrogate(code))
    code = 0x10000 + ((std::exchange(high_, 0) - 0xD800) << 10) + (code - 0xDC00);
  if (!IsHighSurrogate(code))
    return AddText(Utf8Of(IsLowSurrogate(code) || code > 0x10FFFF ? kReplacement : code), inside);
  if (high_ != 0) inside += Utf8Of(kReplacement);
  high_ = code;
}

}  // namespace foretoken::calls
