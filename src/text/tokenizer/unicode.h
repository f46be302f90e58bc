// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/unicode.h: the properties of characters that tokenizers need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace foretoken::text {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

std::string EncodeUtf8(char32_t code);

// True if all of it is UTF-8 and no byte is 0.
bool IsText(std::string_view bytes) noexcept;

enum class CharacterClass : std::uint8_t {
  kUpper,        // Lu
  kLower,        // Ll
  kTitle,        // Lt
  kModifier,     // Lm
  kOtherLetter,  // Lo
  kNumber,
  kWhitespace,  // Unicode's White_Space property
  kPunctuation,
  kSymbol,
  kMark,
  kControl,     // Cc, Cf, Cs, Co
  kUnassigned,  // Cn
};

CharacterClass ClassOf(char32_t code) noexcept;

constexpr bool IsLetter(CharacterClass kind) {
  return kind <= CharacterClass::kOtherLetter;
}

enum class LetterCase : std::uint8_t { kNone, kLower, kUpper, kTitle };

// The case of a character, as Unicode's properties Lowercase and Uppercase have it.
LetterCase CaseOf(char32_t code) noexcept;
// The character in another case, where that is one character; else the character itself.
char32_t InCase(char32_t code, LetterCase wanted) noexcept;

bool IsDecimalDigit(char32_t code) noexcept;  // category Nd
// Neither a control, format or private character nor a separator other than the space, and
// assigned.
bool IsGraphic(char32_t code) noexcept;

// The first character of the canonical decomposition: the letter without its accents.
char32_t WithoutAccents(char32_t code) noexcept;

// Canonical composition (NFC). Bytes that are not UTF-8 stay as they are.
std::string Composed(std::string_view text);

// Replaces every occurrence of `from`, which is not empty.
std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to);

}  // namespace foretoken::text
