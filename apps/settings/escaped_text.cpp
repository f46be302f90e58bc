// SPDX-License-Identifier: Apache-2.0
#include "settings/escaped_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace foretoken::settings {
namespace {

struct Character {
  unsigned code = 0;
  std::size_t size = 0;  // bytes; 0: it is no UTF-8
};

Character FirstOf(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (size == 0 || lead > 0xF4 || size > text.size()) return {};
  unsigned code = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  // Longer than necessary. Such forms hide control characters from programs that search for bytes.
  const bool overlong = (size == 3 && code < 0x800) || (size == 4 && code < 0x10000);
  if (overlong || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
  return {code, size};
}

bool Harmless(unsigned code) {
  if (code < 0x20) return code == '\n' || code == '\t';
  if (code < 0x7F) return true;
  const bool control = code < 0xA0 || code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x061C || code == 0x200E || code == 0x200F ||
                     (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return !control && !turns;
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = FirstOf(text);
    if (c.size == 0)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    else if (Harmless(c.code))
      out += text.substr(0, c.size);
    else
      out += fmt::format("\\u{:04x}", c.code);
    text.remove_prefix(std::max<std::size_t>(c.size, 1));
  }
  return out;
}

}  // namespace foretoken::settings
