// SPDX-License-Identifier: Apache-2.0
// base/utf8.h: reads the first character of a text that may not be valid UTF-8.
#pragma once

#include <string_view>

namespace foretoken {

struct Utf8Character {
  char32_t value = 0;
  int size = 0;  // in bytes; 0: no UTF-8 at the beginning, or empty
};

// Accepts only the shortest form. Values may be surrogates or beyond the last of Unicode; the
// caller must check that.
Utf8Character FirstUtf8Character(std::string_view text) noexcept;

}  // namespace foretoken
