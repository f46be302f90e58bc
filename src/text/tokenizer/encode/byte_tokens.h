// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/encode/byte_tokens.h: tokens that stand for one byte, for characters that are no
// tokens.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocabulary.h"

namespace foretoken::text {

// Immutable. Each byte has the token <0xXX>, else a token of just this byte, else none.
class ByteTokens {
 public:
  explicit ByteTokens(const Vocabulary& vocabulary) : unknown_(vocabulary.unknown) {
    tokens_.fill(kNoToken);
    std::array<Token, 256> plain;
    plain.fill(kNoToken);
    for (Token token = 0; token < vocabulary.size(); ++token) {
      const std::string& text = vocabulary.texts[token];
      if (vocabulary.IsByte(token)) Keep(tokens_[ByteOfTokenText(text)], token);
      if (text.size() == 1 && vocabulary.IsText(token)) Keep(plain[Value(text[0])], token);
    }
    for (std::size_t byte = 0; byte < 256; ++byte) Keep(tokens_[byte], plain[byte]);
  }

  bool CanSpell(std::string_view bytes) const {
    return std::all_of(bytes.begin(), bytes.end(),
                       [&](char byte) { return tokens_[Value(byte)] != kNoToken; });
  }

  // Writes the bytes as tokens; if one is missing, all of them as one unknown token.
  void Spell(std::string_view bytes, std::vector<Token>& tokens) const {
    if (CanSpell(bytes)) {
      for (const char byte : bytes) tokens.push_back(tokens_[Value(byte)]);
    } else if (unknown_ != kNoToken) {
      tokens.push_back(unknown_);
    }
  }

 private:
  static unsigned char Value(char byte) { return static_cast<unsigned char>(byte); }
  static void Keep(Token& kept, Token token) {
    if (kept == kNoToken) kept = token;
  }

  std::array<Token, 256> tokens_{};
  Token unknown_;
};

}  // namespace foretoken::text
