// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/characters.h: a text as Python sees it: a sequence of characters.
//
// Each character has a mark that says whether it came from the conversation. Marks travel with the
// characters through every operation, so that what a user typed can never become a control token.
// Comparisons ignore them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/values/budget.h"

namespace foretoken::text::jinja {

using Characters = std::basic_string<char32_t, std::char_traits<char32_t>, Charged<char32_t>>;
using CharactersView = std::u32string_view;

inline constexpr char32_t kFromInput = 0x80000000;
constexpr char32_t CodeOf(char32_t character) {
  return character & ~kFromInput;
}

// A byte that is not UTF-8 becomes U+DC80 to U+DCFF, as with Python's surrogateescape, and the same
// byte again in ToUtf8. Other surrogates become U+FFFD in ToUtf8.
Characters FromUtf8(std::string_view text, bool from_input = false);
std::string ToUtf8(CharactersView text);
Utf8Text Utf8Of(CharactersView text);  // the same, for what a rendering keeps

// -1, 0 or 1: the order of the codes.
int CompareText(CharactersView a, CharactersView b);
bool SameText(CharactersView a, CharactersView b);
inline constexpr std::size_t kNowhere = CharactersView::npos;
// The place of the first (last) occurrence that begins at `from` or later (ends before `end`). The
// time is linear in the text, whatever the part.
std::size_t FindText(CharactersView text, CharactersView part, std::size_t from = 0);
std::size_t FindLastText(CharactersView text, CharactersView part, std::size_t end = kNowhere);
bool BeginsWith(CharactersView text, CharactersView part);
bool EndsWith(CharactersView text, CharactersView part);

bool IsSpace(char32_t character);  // as str.isspace()
// Removes characters of `set` at the ends; without a set, white space.
enum class Ends { kBoth, kLeft, kRight };
CharactersView Stripped(CharactersView text, Ends ends, const CharactersView* set = nullptr);
// As str.splitlines().
List<CharactersView> LinesOf(CharactersView text, bool keep_ends = false);

Characters Upper(CharactersView text);
Characters Lower(CharactersView text);
Characters Title(CharactersView text);        // as str.title()
Characters Capitalized(CharactersView text);  // as str.capitalize()

bool IsUpper(CharactersView text);
bool IsLower(CharactersView text);
bool IsTitle(CharactersView text);
bool IsAlphabetic(CharactersView text);
bool IsDecimal(CharactersView text);
bool IsDigit(CharactersView text);
bool IsAlphanumeric(CharactersView text);
bool IsIdentifier(CharactersView text);
bool IsWhiteSpace(CharactersView text);
// Whether repr() writes the character as it is.
bool IsPrintable(char32_t character);

}  // namespace foretoken::text::jinja
