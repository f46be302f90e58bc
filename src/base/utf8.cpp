// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstddef>

namespace foretoken {

Utf8Character FirstUtf8Character(std::string_view text) noexcept {
  if (text.empty()) return {};
  const auto lead = static_cast<unsigned char>(text[0]);
  const int n = lead < 0x80   ? 1
                : lead < 0xC2 ? 0
                : lead < 0xE0 ? 2
                : lead < 0xF0 ? 3
                : lead < 0xF5 ? 4
                              : 0;
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (n == 0 || text.size() < static_cast<std::size_t>(n)) return {};
  char32_t value = n == 1 ? lead : lead & (0x7Fu >> n);
  for (std::size_t i = 1; i < static_cast<std::size_t>(n); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0) != 0x80) return {};
    value = value << 6 | (byte & 0x3Fu);
  }
  return value < kLeast[n] ? Utf8Character() : Utf8Character{value, n};
}

}  // namespace foretoken
