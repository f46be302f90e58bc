// SPDX-License-Identifier: Apache-2.0
// The text of error messages, which may repeat parts of files, flags and requests.
#include <fmt/format.h>

#include "base/utf8.h"
#include "foretoken/result.h"

namespace foretoken {
namespace {

// Limits for whole messages. The beginning names the place, the end says what to do.
constexpr std::size_t kMostMessageBytes = 2000, kEndBytes = 400;

// Characters that a terminal or a log would act on, or that change how the text around them reads:
// control characters, characters without a width, and those that turn the direction of text.
bool Hidden(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x61C ||
         (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) ||
         (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xE0000 && c <= 0xE007F);
}

void AppendShown(std::string_view text, Utf8Character c, std::string& out) {
  if (!c.valid())
    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
  else if (c.code == '\n')
    out += "\\n";
  else if (c.code == '\t')
    out += "\\t";
  else if (c.code == '\r')
    out += "\\r";
  else if (!Hidden(c.code))
    out.append(text.substr(0, c.size));
  else if (c.code < 0x80)
    out += fmt::format("\\x{:02x}", static_cast<unsigned>(c.code));
  else
    out += fmt::format("\\u{{{:x}}}", static_cast<unsigned>(c.code));
}

bool IsClean(std::string_view text) {
  while (!text.empty()) {
    const Utf8Character c = ReadUtf8(text);
    if (!c.valid() || Hidden(c.code)) return false;
    text.remove_prefix(c.size);
  }
  return true;
}

bool Continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

}  // namespace

std::string Shown(std::string_view text, std::size_t most_bytes) {
  std::string out;
  while (!text.empty()) {
    const std::size_t before = out.size();
    const Utf8Character c = ReadUtf8(text);
    AppendShown(text, c, out);
    if (out.size() > most_bytes) {
      out.resize(before);
      return out += "...";
    }
    text.remove_prefix(c.valid() ? c.size : 1);
  }
  return out;
}

std::string OneLine(std::string message) {
  if (message.size() <= kMostMessageBytes && IsClean(message)) return message;
  std::string all = Shown(message, 8 * message.size());
  if (all.size() <= kMostMessageBytes) return all;
  std::size_t begin = kMostMessageBytes - kEndBytes, end = all.size() - kEndBytes;
  while (Continues(all[begin])) --begin;
  while (end < all.size() && Continues(all[end])) ++end;
  return all.replace(begin, end - begin, " ... ");
}

}  // namespace foretoken
