// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/special_tokens.h: tokens that are searched in the text before any encoding, and
// tokens that end a generation.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "formats/metadata.h"
#include "text/tokenizer/encode/prefix_index.h"
#include "text/tokenizer/vocabulary.h"

namespace foretoken::text {

// Fills vocabulary.end_tokens: eos, eot and eom of the metadata, and tokens known by their texts.
// Some files mark "<|im_end|>" as a normal token; all tokens known by their texts become control
// tokens here.
void FindEndTokens(const formats::Metadata& metadata, Vocabulary& vocabulary);

// Fills vocabulary.never_drawn: suppress_tokens of the metadata.
void FindSuppressedTokens(const formats::Metadata& metadata, Vocabulary& vocabulary);

// Fills vocabulary.strip_before and strip_after. The file does not say which tokens swallow white
// space; the model's name does.
void FindStrippingTokens(const formats::Metadata& metadata, Vocabulary& vocabulary);

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
  std::vector<Occurrence> FindAll(std::string_view text, const PrefixIndex& index) const;
  std::size_t TextBegin(std::string_view text, std::size_t begin, std::size_t end,
                        Token before) const;
  std::size_t TextEnd(std::string_view text, std::size_t begin, std::size_t end,
                      Token behind) const;

  const Vocabulary& vocabulary_;
  PrefixIndex all_;
  PrefixIndex user_defined_;
};

}  // namespace foretoken::text
