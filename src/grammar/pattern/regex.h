// SPDX-License-Identifier: Apache-2.0
// grammar/pattern/regex.h: regular expressions, with the constructs that a grammar can follow.
//
// Literals, classes [a-z] [^...] \d \D \w \W \s \S and ., groups ( ) (?: ) (?<name> ), |, * + ? {n}
// {n,} {n,m} and their lazy forms, which match the same texts; ^ at the beginning and $ at the end
// of the whole or of one of its alternatives. Classes are ECMAScript's; \s matches ASCII's
// whitespace only.
#pragma once

#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "grammar/pattern/character_class.h"
#include "grammar/pattern/gbnf_writer.h"

namespace foretoken::grammar {

struct RegexNode {
  enum class Kind { kCharacter, kSequence, kAlternatives, kRepeat };

  Kind kind = Kind::kSequence;
  CharacterClass characters = {};
  std::vector<RegexNode> children = {};  // a repeat has one
  int least = 0, most = GbnfWriter::kNoEnd;
};

struct Regex {
  static constexpr int kMaxDepth = 48;       // of groups
  static constexpr int kMaxRepeats = 10000;  // a number in {n,m}

  struct Alternative {
    bool at_begin = false, at_end = false;  // ^, $
    RegexNode body;
  };
  std::vector<Alternative> alternatives;  // at least one
};

// Errors: kInvalidArgument (a syntax error), kUnsupported (lookaround, backreferences, word
// boundaries, anchors inside, flags, Unicode properties), kTooLarge. They begin with the place.
[[nodiscard]] Result<Regex> ParseRegex(std::string_view pattern);

// The number of characters of its texts, without what may surround them if an anchor is missing.
// most kNoEnd: any number.
struct RegexLength {
  std::int64_t least = 0, most = 0;
};
RegexLength LengthOf(const Regex& regex);

// Matches the whole text, whether it is anchored or not.
GbnfWriter::Part WholeText(const Regex& regex, GbnfWriter& writer);
// The inside of a JSON string that contains a match; around: a character of such a string.
GbnfWriter::Part InsideOfString(const Regex& regex, GbnfWriter::Part around, GbnfWriter& writer);

// The characters that a JSON string contains without escapes, except DEL.
const CharacterClass& PlainInStrings();

}  // namespace foretoken::grammar
