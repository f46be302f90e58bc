// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/split/patterns.h: what each value of tokenizer.ggml.pre stands for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace foretoken::text {

// What happens to each match of a stage's expression.
enum class Cut : std::uint8_t {
  kMatch,         // the match is a part
  kThreesEnd,     // the match (a run of digits) is cut in threes, counted from its right end; the
                  // text before the run stays with its first part
  kBeforeThrees,  // the text is cut before each three digits, counted so, and nowhere else
};

// The expressions are PCRE2's, with these additions inside brackets: \p{..}, \s, \z{digits} (all
// characters of these zones) and \p{L0} (letters of no zone). \contraction and \space stand for
// alternatives that many patterns share.
struct SplitStage {
  std::string_view expression;
  Cut cut = Cut::kMatch;
};

// Characters beyond ASCII that a pattern names itself. A character's zone has the bits of all the
// ranges that contain it; zone 0 is everything else, and all white space.
struct ZoneRange {
  char32_t first;
  char32_t last;
  std::uint8_t bits;  // 1 to 7
};

// The stages are applied in turn, each to the parts that the one before left.
struct SplitRules {
  std::span<const SplitStage> stages;
  std::span<const ZoneRange> zones = {};
  // What the model's authors published, where llama.cpp's reading of it (`stages`) differs for some
  // characters; else empty.
  std::span<const SplitStage> exact = {};
};

// What the merges of a pattern's words begin with.
enum class Symbols : std::uint8_t {
  kBytes,            // one symbol a byte, in GPT-2's alphabet
  kCharacters,       // one symbol a character
  kMarkedCharacters  // the same, with spaces as U+2581
};

struct Pattern {
  std::string_view name;
  const SplitRules* rules;
  bool ignore_merges = false;  // a word that is a token becomes one without merges
  bool add_bos = false;        // the default if the file has no setting
  Symbols symbols = Symbols::kBytes;
  bool whole_newlines = false;  // a run of newlines that is a token becomes one without merges
  bool mark_lines = false;      // every line begins with a U+2581
  bool always_bos = false;      // whatever the file says
  bool known = true;            // false: an unknown name, replaced by the default pattern
};

// The pattern for a value of tokenizer.ggml.pre; empty means "default".
Pattern FindPattern(std::string_view name);

// All of them, for tests.
std::span<const Pattern> AllPatterns();

}  // namespace foretoken::text
