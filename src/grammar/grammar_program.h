// SPDX-License-Identifier: Apache-2.0
// grammar/grammar_program.h: a grammar as the instructions of a machine that reads bytes and has a
// stack. A character is its UTF-8 sequence, so a token may end in the middle of one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "foretoken/result.h"

namespace foretoken::grammar {

struct GrammarStep {
  enum class Kind : std::uint8_t {
    kReturn,  // ends the rule
    kByte,    // reads one of [low, high], continues at next
    kSplit,   // continues at next and at other
    kCall,    // calls the rule that begins at other, then continues at next
  };
  Kind kind = Kind::kReturn;
  std::uint8_t low = 0, high = 0;
  int next = 0, other = 0;
};

// Step 0 is the only kReturn: a call whose next is 0 needs no place on the stack. No sequence of
// steps without a kByte calls a rule from within itself, and every step leads to a return.
struct GrammarProgram {
  std::vector<GrammarStep> steps;
  int begin = 0;
  std::vector<Token> controls = {};  // the control tokens that it names
};

// Errors: those of ParseGbnf; kTooLarge if repetitions make too many steps.
[[nodiscard]] Result<GrammarProgram> CompileGbnf(std::string_view text);

}  // namespace foretoken::grammar
