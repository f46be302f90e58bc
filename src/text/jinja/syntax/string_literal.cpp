// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/syntax/string_literal.h"

#include <fmt/format.h>

namespace foretoken::text::jinja {
namespace {

int HexDigit(char32_t c) {
  if (c >= U'0' && c <= U'9') return static_cast<int>(c - U'0');
  if (c >= U'a' && c <= U'f') return static_cast<int>(c - U'a') + 10;
  if (c >= U'A' && c <= U'F') return static_cast<int>(c - U'A') + 10;
  return -1;
}

// Reads `digits` hexadecimal digits at `at` and moves behind them.
Result<char32_t> HexCode(CharactersView text, std::size_t& at, int digits) {
  char32_t code = 0;
  for (int i = 0; i < digits; ++i, ++at) {
    const int digit = at < text.size() ? HexDigit(text[at]) : -1;
    if (digit < 0)
      return Fail(
          ErrorCode::kInvalidArgument,
          fmt::format("an escape in a string needs {} hexadecimal digits; write them", digits));
    code = code * 16 + static_cast<char32_t>(digit);
  }
  if (code > 0x10FFFF)
    return Fail(ErrorCode::kInvalidArgument,
                "an escape in a string is beyond Unicode; use at most \\U0010ffff");
  return code;
}

char32_t OctalCode(CharactersView text, std::size_t& at) {
  char32_t code = 0;
  for (int i = 0; i < 3 && at < text.size() && text[at] >= U'0' && text[at] <= U'7'; ++i)
    code = code * 8 + (text[at++] - U'0');
  return code;
}

}  // namespace

Result<Characters> Unescaped(CharactersView text) {
  constexpr CharactersView kLetters = U"abfnrtv\\'\"", kMeanings = U"\a\b\f\n\r\t\v\\'\"";
  Characters out;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = text[at++];
    if (c != U'\\' || at == text.size()) {
      out += c;
      continue;
    }
    const char32_t letter = text[at];
    if (const std::size_t place = kLetters.find(letter); place != kNowhere) {
      out += kMeanings[place];
      ++at;
    } else if (letter == U'\n') {
      ++at;
    } else if (letter >= U'0' && letter <= U'7') {
      out += OctalCode(text, at);
    } else if (letter == U'x' || letter == U'u' || letter == U'U') {
      ++at;
      FORETOKEN_TRY(const char32_t code, HexCode(text, at,
                                                 letter == U'x'   ? 2
                                                 : letter == U'u' ? 4
                                                                  : 8));
      out += code;
    } else if (letter == U'N') {
      return Fail(ErrorCode::kUnsupported,
                  "\\N{...} in a string is not supported; use \\u with the number");
    } else {
      out += U'\\';
    }
  }
  return out;
}

}  // namespace foretoken::text::jinja
