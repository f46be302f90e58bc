// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

namespace foretoken {
namespace {

// The range of the second byte. It excludes overlong forms, surrogates and codes over U+10FFFF.
struct ByteRange {
  unsigned char low;
  unsigned char high;
};
constexpr ByteRange SecondByteRange(unsigned char lead) {
  switch (lead) {
    case 0xE0:
      return {0xA0, 0xBF};
    case 0xED:
      return {0x80, 0x9F};
    case 0xF0:
      return {0x90, 0xBF};
    case 0xF4:
      return {0x80, 0x8F};
    default:
      return {0x80, 0xBF};
  }
}

}  // namespace

Utf8Character ReadUtf8(std::string_view text) noexcept {
  if (text.empty()) return {0, 0, Utf8State::kIncomplete};
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1, Utf8State::kValid};
  if (lead < 0xC2 || lead > 0xF4) return {0, 1, Utf8State::kInvalid};
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  char32_t code = lead & (0x7Fu >> size);
  for (std::size_t i = 1; i < size; ++i) {
    if (i == text.size()) return {0, i, Utf8State::kIncomplete};
    const ByteRange range = i == 1 ? SecondByteRange(lead) : ByteRange{0x80, 0xBF};
    if (byte(i) < range.low || byte(i) > range.high) return {0, i, Utf8State::kInvalid};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {code, size, Utf8State::kValid};
}

}  // namespace foretoken
