// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/special_tokens.h: tokens that are searched in the text before any encoding, and tokens that
// end a generation.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "formats/metadata.h"
#include "text/tokenizer/vocabulary.h"

namespace foretoken::text {

// Fills vocabulary.end_tokens: eos, eot and eom of the metadata, and tokens known by their texts.
// Some files mark "<|im_end|>" as a normal token; all tokens known by their texts become control
// tokens here.
void FindEndTokens(const formats::Metadata& metadata, Vocabulary& vocabulary);

struct Fragment {
  Token token = kNoToken;  // a special token, or kNoToken for text
  std::size_t begin = 0;
  std::size_t size = 0;
};

// Finds the special tokens of a text: user-defined ones always, control and unknown ones on
// request. Longer tokens are found first, wherever they are; of equally long ones the lower id,
// then the leftmost occurrence. Immutable; keeps a reference to the vocabulary.
class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);

  // The parts of the text in order. Texts are never empty.
  std::vector<Fragment> Split(std::string_view text, bool parse_special) const;

 private:
  struct Occurrence {
    std::size_t begin;
    Token token;
  };
  void FindAt(std::string_view text, std::size_t at, bool parse_special,
              std::vector<Occurrence>& found) const;

  const Vocabulary& vocabulary_;
  std::vector<Token> by_text_;  // sorted by text: the range of a common prefix acts as a trie node
  std::vector<bool> first_byte_;  // [256]: some special token begins with the byte
};

}  // namespace foretoken::text
