// SPDX-License-Identifier: Apache-2.0
// grammar/gbnf.h: reads a grammar in GBNF, llama.cpp's notation, as a tree.
//
//   root  ::= "yes" | "no" ws | [a-z]+ "." (item | "x")? {2,5}      # a comment
//   ws    ::= [ \t\n]*
//
// A grammar has rules `name ::= alternatives`; one of them is `root`. It has literals in quotes,
// classes of characters [a-z_] and [^"\\], any character `.`, the control token of a number <[7]>,
// groups, and behind an item * + ? {n} {n,} {n,m}. Escapes: \n \r \t \\ \" \[ \] \- \^, \x41, \u00e9, \U0001F600. A rule ends with its
// line, except that lines inside groups and lines that begin with `|` continue it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "foretoken/result.h"

namespace foretoken::grammar {

struct CodePoints {
  char32_t first = 0, last = 0;
};
inline constexpr CodePoints kSurrogates = {0xD800, 0xDFFF};  // no Unicode scalars
inline constexpr char32_t kLastCodePoint = 0x10FFFF;

struct GbnfNode {
  enum class Kind { kSequence, kAlternatives, kCharacter, kControl, kRule, kRepeat };

  Kind kind = Kind::kSequence;
  std::vector<int> children = {};       // nodes; a repeat has one
  std::vector<CodePoints> ranges = {};  // kCharacter: ascending, disjoint, Unicode scalars
  Token token = kNoToken;               // kControl
  int rule = 0;                         // kRule: the rule that is called
  int least = 0, most = -1;             // kRepeat; most -1: no upper limit
};

struct GbnfRule {
  std::string name;
  int body = -1;  // a node
};

struct Gbnf {
  std::vector<GbnfNode> nodes;  // a forest: each is the child of one node or the body of one rule
  std::vector<GbnfRule> rules;
  int root = 0;                // a rule
  std::vector<bool> nullable;  // [nodes]: can be empty
};

// Errors, with the line: kInvalidArgument (a syntax error, a rule that is missing or defined twice,
// left recursion, a rule that cannot end), kTooLarge.
[[nodiscard]] Result<Gbnf> ParseGbnf(std::string_view text);

}  // namespace foretoken::grammar
