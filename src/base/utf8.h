// SPDX-License-Identifier: Apache-2.0
// base/utf8.h: reads UTF-8 one character at a time, from a text that may not be valid.
#pragma once

#include <cstddef>
#include <string_view>

namespace foretoken {

enum class Utf8State {
  kValid,       // a whole character
  kInvalid,     // bytes that no following byte can make valid
  kIncomplete,  // the text ends inside a character that may still become valid
};

struct Utf8Character {
  char32_t code = 0;     // meaningful if it is valid
  std::size_t size = 0;  // in bytes: the character, or the maximal invalid (or incomplete) part
  Utf8State state = Utf8State::kInvalid;

  bool valid() const { return state == Utf8State::kValid; }
};

// Reads the first character. An empty text is incomplete; overlong forms, surrogates and codes over
// U+10FFFF are invalid.
Utf8Character ReadUtf8(std::string_view text) noexcept;

constexpr bool IsAscii(char byte) noexcept {
  return (byte & 0x80) == 0;
}

// The size in bytes of the character at `at`, which is inside the text.
inline std::size_t SizeOfCharacter(std::string_view text, std::size_t at) noexcept {
  return IsAscii(text[at]) ? 1 : ReadUtf8(text.substr(at)).size;
}

}  // namespace foretoken
