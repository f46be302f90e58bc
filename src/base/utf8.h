// SPDX-License-Identifier: Apache-2.0
// base/utf8.h: the first character of a text that need not be UTF-8.
#pragma once

#include <string_view>

namespace foretoken {

struct Utf8Character {
  char32_t value = 0;
  int size = 0;  // bytes; 0: the text begins with no UTF-8, or is empty
};

// The shortest form alone is taken. Values may be surrogates or lie behind the last of Unicode:
// what is wrong with those is the caller's to say.
Utf8Character FirstUtf8Character(std::string_view text) noexcept;

}  // namespace foretoken
