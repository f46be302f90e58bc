// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/characters.h"

#include <algorithm>
#include <functional>

#include "text/jinja/values/full_case.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text::jinja {
namespace {

constexpr char32_t kFirstByte = 0xDC00;  // a byte that is not UTF-8 is this plus the byte

bool Same(char32_t a, char32_t b) {
  return CodeOf(a) == CodeOf(b);
}

bool IsLetter(char32_t code) {
  return text::IsLetter(ClassOf(code));
}

// The digits that are not decimal: superscripts, circled digits and the like.
bool IsOtherDigit(char32_t c) {
  constexpr std::pair<char32_t, char32_t> kRanges[] = {
      {0xB2, 0xB3},       {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},
      {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
      {0x2474, 0x247C},   {0x2488, 0x2490},   {0x24EA, 0x24EA},   {0x24F5, 0x24FD},
      {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},   {0x278A, 0x2792},
      {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [&](const auto& range) { return c >= range.first && c <= range.second; });
}

// Appends the character in upper or title case, with the character's mark.
void AppendCased(char32_t character, LetterCase wanted, Characters& out) {
  const char32_t code = CodeOf(character), mark = character & kFromInput;
  if (code >= 0x80) {
    const auto* const full = std::lower_bound(
        std::begin(kFullCases), std::end(kFullCases), code,
        [](const FullCase& row, char32_t wanted_code) { return row.code < wanted_code; });
    if (full != std::end(kFullCases) && full->code == code) {
      for (const char32_t c :
           CharactersView(wanted == LetterCase::kUpper ? full->upper : full->title))
        out += c | mark;
      return;
    }
  }
  out += InCase(code, wanted) | mark;
}

// Characters that the rule of the final sigma looks through.
bool IsCaseIgnorable(char32_t code) {
  const CharacterClass kind = ClassOf(code);
  return kind == CharacterClass::kMark || code == '\'' || code == '.' || code == ':' ||
         code == 0xB7 || code == 0x2018 || code == 0x2019 || code == 0x2024 || code == 0x2027 ||
         code == 0xAD;
}

// Whether the capital sigma at `at` ends a word, and so becomes U+03C2.
bool IsFinalSigma(CharactersView text, std::size_t at) {
  std::size_t before = at;
  while (before > 0 && IsCaseIgnorable(CodeOf(text[before - 1]))) --before;
  if (before == 0 || CaseOf(CodeOf(text[before - 1])) == LetterCase::kNone) return false;
  std::size_t behind = at + 1;
  while (behind < text.size() && IsCaseIgnorable(CodeOf(text[behind]))) ++behind;
  return behind == text.size() || CaseOf(CodeOf(text[behind])) == LetterCase::kNone;
}

void AppendLower(CharactersView text, std::size_t at, Characters& out) {
  const char32_t code = CodeOf(text[at]), mark = text[at] & kFromInput;
  if (code == 0x130) {
    out += U'i' | mark;
    out += char32_t{0x307} | mark;
  } else if (code == 0x3A3) {
    out += (IsFinalSigma(text, at) ? char32_t{0x3C2} : char32_t{0x3C3}) | mark;
  } else {
    out += InCase(code, LetterCase::kLower) | mark;
  }
}

bool AllOf(CharactersView text, bool (*holds)(char32_t)) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [&](char32_t c) { return holds(CodeOf(c)); });
}

// Whether the text has cased characters, and all of them are of this case.
bool IsInCase(CharactersView text, LetterCase wanted) {
  bool any = false;
  for (const char32_t c : text) {
    const LetterCase found = CaseOf(CodeOf(c));
    if (found == LetterCase::kNone) continue;
    if (found != wanted) return false;
    any = true;
  }
  return any;
}

std::size_t Utf8Bytes(char32_t code) {
  return code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
}

template <typename Text>
Text AsUtf8(CharactersView text) {
  std::size_t n_bytes = 0;
  for (const char32_t character : text) n_bytes += Utf8Bytes(CodeOf(character));
  Text out;
  out.reserve(n_bytes);
  for (const char32_t character : text) {
    const char32_t code = CodeOf(character);
    if (code < 0x80)
      out += static_cast<char>(code);
    else if (code >= kFirstByte + 0x80 && code <= kFirstByte + 0xFF)
      out += static_cast<char>(code - kFirstByte);
    else if (code >= 0xD800 && code <= 0xDFFF)
      out += kReplacementCharacter;
    else
      out += EncodeUtf8(code);
  }
  return out;
}

// The place of the first occurrence of the part in the text, as iterators see them. Linear for
// every pair: Knuth, Morris and Pratt.
template <typename Iterator>
std::size_t FindFrom(Iterator text, std::size_t text_size, Iterator part, std::size_t part_size) {
  if (part_size > text_size) return kNowhere;
  if (part_size == 0) return 0;
  const auto at = [](Iterator begin, std::size_t i) {
    return begin[static_cast<std::ptrdiff_t>(i)];
  };
  if (part_size <= 8) {
    const auto end = text + static_cast<std::ptrdiff_t>(text_size);
    const auto found =
        std::search(text, end, part, part + static_cast<std::ptrdiff_t>(part_size), Same);
    return found == end ? kNowhere : static_cast<std::size_t>(found - text);
  }
  List<std::uint32_t> border(part_size + 1, 0);
  for (std::uint32_t i = 1, k = 0; i < part_size; ++i) {
    while (k > 0 && !Same(at(part, i), at(part, k))) k = border[k];
    if (Same(at(part, i), at(part, k))) ++k;
    border[i + 1] = k;
  }
  for (std::size_t i = 0, k = 0; i < text_size; ++i) {
    while (k > 0 && !Same(at(text, i), at(part, k))) k = border[k];
    if (Same(at(text, i), at(part, k))) ++k;
    if (k == part_size) return i + 1 - k;
  }
  return kNowhere;
}

bool IsLineEnd(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

}  // namespace

Characters FromUtf8(std::string_view text, bool from_input) {
  const char32_t mark = from_input ? kFromInput : 0;
  Characters out;
  // Each character has one byte that continues no other, except in texts that are not UTF-8.
  out.reserve(static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  })));
  while (!text.empty()) {
    const Utf8Character c = ReadUtf8(text);
    if (c.state == Utf8State::kValid) {
      out += c.code | mark;
      text.remove_prefix(c.size);
    } else {
      out += (kFirstByte + static_cast<unsigned char>(text[0])) | mark;
      text.remove_prefix(1);
    }
  }
  return out;
}

std::string ToUtf8(CharactersView text) {
  return AsUtf8<std::string>(text);
}

Utf8Text Utf8Of(CharactersView text) {
  return AsUtf8<Utf8Text>(text);
}

int CompareText(CharactersView a, CharactersView b) {
  const std::size_t n = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < n; ++i)
    if (!Same(a[i], b[i])) return CodeOf(a[i]) < CodeOf(b[i]) ? -1 : 1;
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

bool SameText(CharactersView a, CharactersView b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), Same);
}

std::size_t FindText(CharactersView text, CharactersView part, std::size_t from) {
  if (from > text.size()) return kNowhere;
  const std::size_t found = FindFrom(text.begin() + static_cast<std::ptrdiff_t>(from),
                                     text.size() - from, part.begin(), part.size());
  return found == kNowhere ? kNowhere : from + found;
}

std::size_t FindLastText(CharactersView text, CharactersView part, std::size_t end) {
  text = text.substr(0, end);
  const std::size_t found = FindFrom(text.rbegin(), text.size(), part.rbegin(), part.size());
  return found == kNowhere ? kNowhere : text.size() - found - part.size();
}

bool BeginsWith(CharactersView text, CharactersView part) {
  return text.size() >= part.size() && SameText(text.substr(0, part.size()), part);
}

bool EndsWith(CharactersView text, CharactersView part) {
  return text.size() >= part.size() && SameText(text.substr(text.size() - part.size()), part);
}

bool IsSpace(char32_t character) {
  const char32_t code = CodeOf(character);
  return (code >= 0x1C && code <= 0x1F) || ClassOf(code) == CharacterClass::kWhitespace;
}

CharactersView Stripped(CharactersView text, Ends ends, const CharactersView* set) {
  // Sorted, so that a long set costs no more than its length.
  List<char32_t> codes;
  if (set != nullptr) {
    codes.resize(set->size());
    std::transform(set->begin(), set->end(), codes.begin(), CodeOf);
    std::sort(codes.begin(), codes.end());
  }
  const auto goes = [&](char32_t c) {
    return set == nullptr ? IsSpace(c) : std::binary_search(codes.begin(), codes.end(), CodeOf(c));
  };
  if (ends != Ends::kRight)
    while (!text.empty() && goes(text.front())) text.remove_prefix(1);
  if (ends != Ends::kLeft)
    while (!text.empty() && goes(text.back())) text.remove_suffix(1);
  return text;
}

List<CharactersView> LinesOf(CharactersView text, bool keep_ends) {
  List<CharactersView> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && !IsLineEnd(CodeOf(text[end]))) ++end;
    std::size_t next = std::min(end + 1, text.size());
    if (next < text.size() && CodeOf(text[end]) == '\r' && CodeOf(text[next]) == '\n') ++next;
    lines.push_back(text.substr(begin, (keep_ends ? next : end) - begin));
    begin = next;
  }
  return lines;
}

Characters Upper(CharactersView text) {
  Characters out;
  out.reserve(text.size());
  for (const char32_t c : text) AppendCased(c, LetterCase::kUpper, out);
  return out;
}

Characters Lower(CharactersView text) {
  Characters out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) AppendLower(text, i, out);
  return out;
}

Characters Title(CharactersView text) {
  Characters out;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (inside)
      AppendLower(text, i, out);
    else
      AppendCased(text[i], LetterCase::kTitle, out);
    inside = CaseOf(CodeOf(text[i])) != LetterCase::kNone;
  }
  return out;
}

Characters Capitalized(CharactersView text) {
  Characters out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 0)
      AppendCased(text[i], LetterCase::kTitle, out);
    else
      AppendLower(text, i, out);
  }
  return out;
}

bool IsUpper(CharactersView text) {
  return IsInCase(text, LetterCase::kUpper);
}

bool IsLower(CharactersView text) {
  return IsInCase(text, LetterCase::kLower);
}

bool IsTitle(CharactersView text) {
  bool any = false, inside = false;
  for (const char32_t c : text) {
    const LetterCase found = CaseOf(CodeOf(c));
    if (found == LetterCase::kLower && !inside) return false;
    if ((found == LetterCase::kUpper || found == LetterCase::kTitle) && inside) return false;
    inside = found != LetterCase::kNone;
    any = any || inside;
  }
  return any;
}

bool IsAlphabetic(CharactersView text) {
  return AllOf(text, IsLetter);
}

bool IsDecimal(CharactersView text) {
  return AllOf(text, IsDecimalDigit);
}

bool IsDigit(CharactersView text) {
  return AllOf(text, [](char32_t c) { return IsDecimalDigit(c) || IsOtherDigit(c); });
}

bool IsAlphanumeric(CharactersView text) {
  return AllOf(text,
               [](char32_t c) { return IsLetter(c) || ClassOf(c) == CharacterClass::kNumber; });
}

bool IsIdentifier(CharactersView text) {
  const auto begins = [](char32_t c) { return IsLetter(c) || c == '_'; };
  return !text.empty() && begins(CodeOf(text[0])) && AllOf(text, [](char32_t c) {
    return IsLetter(c) || c == '_' || IsDecimalDigit(c) || ClassOf(c) == CharacterClass::kMark;
  });
}

bool IsWhiteSpace(CharactersView text) {
  return AllOf(text, [](char32_t c) { return IsSpace(c); });
}

bool IsPrintable(char32_t character) {
  return IsGraphic(CodeOf(character));
}

}  // namespace foretoken::text::jinja
