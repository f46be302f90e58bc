// SPDX-License-Identifier: Apache-2.0
// sampling/grammar_program.h: a grammar as instructions of a machine that reads bytes and has a
// stack. Characters are their UTF-8 sequences, so a token may end in the middle of one.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::sampling {

struct GrammarStep {
  enum class Kind : std::uint8_t {
    kReturn,  // the rule is read
    kByte,    // reads one of [low, high], on to next
    kSplit,   // to next and to other
    kCall,    // reads the rule that begins at other, then on to next
  };
  Kind kind = Kind::kReturn;
  std::uint8_t low = 0, high = 0;
  int next = 0, other = 0;
};

// Step 0 is the only kReturn: a call whose next is 0 needs no place on the stack. No run of steps
// without a kByte calls a rule from within itself, and every step leads to a return.
struct GrammarProgram {
  std::vector<GrammarStep> steps;
  int begin = 0;
};

// Errors: those of ParseGbnf; kTooLarge where repetitions make too many steps.
[[nodiscard]] Result<GrammarProgram> CompileGbnf(std::string_view text);

}  // namespace foretoken::sampling
