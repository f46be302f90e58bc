// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>
#include <vector>

#include "base/work_count.h"

namespace foretoken::text {
namespace {

constexpr bool IsWhitespace(char32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

struct CodeRange {
  char32_t first, last;
};
constexpr bool IsIn(std::span<const CodeRange> ranges, char32_t code) {
  for (const CodeRange& range : ranges)
    if (code >= range.first && code <= range.last) return true;
  return false;
}

// Unicode's properties Other_Uppercase and Other_Lowercase.
constexpr CodeRange kOtherUpper[] = {
    {0x2160, 0x216F}, {0x24B6, 0x24CF}, {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};
constexpr CodeRange kOtherLower[] = {
    {0xAA, 0xAA},       {0xBA, 0xBA},       {0x2B0, 0x2B8},     {0x2C0, 0x2C1},    {0x2E0, 0x2E4},
    {0x345, 0x345},     {0x37A, 0x37A},     {0x1D2C, 0x1D6A},   {0x1D78, 0x1D78},  {0x1D9B, 0x1DBF},
    {0x2071, 0x2071},   {0x207F, 0x207F},   {0x2090, 0x209C},   {0x2170, 0x217F},  {0x24D0, 0x24E9},
    {0x2C7C, 0x2C7D},   {0xA69C, 0xA69D},   {0xA770, 0xA770},   {0xA7F8, 0xA7F9},  {0xAB5C, 0xAB5F},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107B0}, {0x107B2, 0x107BA}};

struct Ordered {
  utf8proc_int32_t code;
  utf8proc_propval_t order;  // the canonical combining class
};

void Decompose(char32_t code, std::vector<Ordered>& run) {
  utf8proc_int32_t parts[8];
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts, 8,
                                             UTF8PROC_DECOMPOSE, &boundary);
  for (int i = 0; i < count && count <= 8; ++i) {
    run.push_back({parts[i], utf8proc_get_property(parts[i])->combining_class});
  }
}

// Appends the composed run to `out` and empties it. utf8proc sorts marks by insertion, which takes
// quadratic time; they come sorted to it.
void Compose(std::vector<Ordered>& run, std::string& out) {
  if (run.empty()) return;
  for (auto begin = run.begin(); begin != run.end();) {
    const auto end = std::find_if(begin + 1, run.end(), [](Ordered o) { return o.order == 0; });
    std::stable_sort(begin + (begin->order == 0 ? 1 : 0), end,
                     [](Ordered a, Ordered b) { return a.order < b.order; });
    begin = end;
  }
  std::vector<utf8proc_int32_t> codes;
  for (const Ordered& ordered : run) codes.push_back(ordered.code);
  const auto size = utf8proc_normalize_utf32(
      codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), UTF8PROC_COMPOSE);
  for (utf8proc_ssize_t i = 0; i < size; ++i) out += EncodeUtf8(static_cast<char32_t>(codes[i]));
  run.clear();
}

}  // namespace

std::string EncodeUtf8(char32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

CharacterClass ClassOf(char32_t code) noexcept {
  // Debian 12's utf8proc has Unicode 15.0. These characters came with 15.1, which the tables of
  // other engines have.
  if (code >= 0x2EBF0 && code <= 0x2EE5D) return CharacterClass::kOtherLetter;
  if ((code >= 0x2FFC && code <= 0x2FFF) || code == 0x31EF) return CharacterClass::kSymbol;
  if (IsWhitespace(code)) return CharacterClass::kWhitespace;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
      return CharacterClass::kUpper;
    case UTF8PROC_CATEGORY_LL:
      return CharacterClass::kLower;
    case UTF8PROC_CATEGORY_LT:
      return CharacterClass::kTitle;
    case UTF8PROC_CATEGORY_LM:
      return CharacterClass::kModifier;
    case UTF8PROC_CATEGORY_LO:
      return CharacterClass::kOtherLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharacterClass::kNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return CharacterClass::kPunctuation;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return CharacterClass::kSymbol;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return CharacterClass::kMark;
    case UTF8PROC_CATEGORY_CN:
      return CharacterClass::kUnassigned;
    default:
      return CharacterClass::kControl;
  }
}

LetterCase CaseOf(char32_t code) noexcept {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
      return LetterCase::kUpper;
    case UTF8PROC_CATEGORY_LL:
      return LetterCase::kLower;
    case UTF8PROC_CATEGORY_LT:
      return LetterCase::kTitle;
    default:
      return IsIn(kOtherUpper, code)   ? LetterCase::kUpper
             : IsIn(kOtherLower, code) ? LetterCase::kLower
                                       : LetterCase::kNone;
  }
}

char32_t InCase(char32_t code, LetterCase wanted) noexcept {
  const auto c = static_cast<utf8proc_int32_t>(code);
  const utf8proc_int32_t mapped = wanted == LetterCase::kUpper   ? utf8proc_toupper(c)
                                  : wanted == LetterCase::kLower ? utf8proc_tolower(c)
                                                                 : utf8proc_totitle(c);
  return static_cast<char32_t>(mapped);
}

bool IsDecimalDigit(char32_t code) noexcept {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_ND;
}

bool IsGraphic(char32_t code) noexcept {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return code == ' ';
    default:
      return true;
  }
}

char32_t WithoutAccents(char32_t code) noexcept {
  utf8proc_int32_t parts[8];
  int boundary = 0;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), parts, 8,
                                             UTF8PROC_DECOMPOSE, &boundary);
  return count > 0 && count <= 8 ? static_cast<char32_t>(parts[0]) : code;
}

std::string Composed(std::string_view text) {
  // Nothing before U+0300 combines with what is before it.
  if (std::none_of(text.begin(), text.end(), [](char c) { return (c & 0xFF) >= 0xCC; })) {
    return std::string(text);
  }
  std::string out;
  out.reserve(text.size());
  std::vector<Ordered> run;
  while (!text.empty()) {
    CountWork();
    // A character of ASCII changes only with a mark behind it, which has more than one byte.
    if (IsAscii(text[0]) && (text.size() == 1 || IsAscii(text[1]))) {
      Compose(run, out);
      out.push_back(text[0]);
      text.remove_prefix(1);
      continue;
    }
    const Utf8Character character = ReadUtf8(text);
    if (character.state == Utf8State::kValid) {
      Decompose(character.code, run);
    } else {
      Compose(run, out);
      out.append(text.substr(0, character.size));
    }
    text.remove_prefix(character.size);
  }
  Compose(run, out);
  return out;
}

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const std::size_t at = text.find(from);
    out.append(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    out.append(to);
    text.remove_prefix(at + from.size());
  }
}

bool IsText(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const Utf8Character character = ReadUtf8(bytes);
    if (character.state != Utf8State::kValid || character.code == 0) return false;
    bytes.remove_prefix(character.size);
  }
  return true;
}

}  // namespace foretoken::text
