// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/encode/character_map.h: SentencePiece's compiled normalisation rules
// (tokenizer.ggml.precompiled_charsmap): sequences of bytes and what replaces them.
//
// The layout, little-endian: u32 the size of the trie in bytes; the trie, a double array of u32;
// the replacements, each ended by a zero byte. An entry of the trie has its label in bits 0-7, in
// bit 8 whether a sequence ends there, in bits 10-30 the offset to its children, which is shifted
// by 8 more bits if bit 9 is set; the entry at a sequence's end holds the place of its replacement
// in bits 0-30.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "foretoken/result.h"

namespace foretoken::text {

// Immutable.
class CharacterMap {
 public:
  CharacterMap() = default;  // replaces nothing

  // bytes: the metadata's list, one number a byte. Errors: kInvalidFile (a number that is no byte,
  // sizes that do not fit, a replacement without an end).
  [[nodiscard]] static Result<CharacterMap> Read(const std::vector<std::int64_t>& bytes);

  struct Match {
    std::size_t size = 0;  // bytes of the text; 0 if nothing matches
    std::string_view replacement;
  };
  // The longest sequence that the text begins with.
  Match Find(std::string_view text) const;

 private:
  std::vector<std::uint32_t> trie_;
  std::string replacements_;
};

}  // namespace foretoken::text
