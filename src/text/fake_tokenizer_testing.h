// SPDX-License-Identifier: Apache-2.0
// text/fake_tokenizer_testing.h: a tokenizer without a vocabulary file, for unit tests.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/tokenizer/tokenizer.h"

namespace foretoken::text {

// Token i is letter i of the alphabet, which repeats; text is any string of such letters.
class FakeTokenizer : public Tokenizer {
 public:
  explicit FakeTokenizer(int vocabulary) : vocabulary_(vocabulary) {
    for (int i = 0; i < vocabulary; ++i) texts_.emplace_back(1, static_cast<char>('a' + i % 26));
  }
  std::vector<Token> Encode(std::string_view text, EncodeOptions) const override {
    std::vector<Token> tokens;
    for (const char c : text) tokens.push_back(c - 'a');
    return tokens;
  }
  std::vector<Token> EncodeParts(std::span<const TextPart> parts) const override {
    std::string whole;
    for (const TextPart& part : parts) whole += part.text;
    return Encode(whole, {});
  }
  std::string Piece(Token token, bool) const override { return TokenText(token); }
  std::string Decode(std::span<const Token> tokens, bool, bool) const override {
    std::string text;
    for (const Token token : tokens) text += TokenText(token);
    return text;
  }
  int vocabulary_size() const override { return vocabulary_; }
  const std::string& TokenText(Token token) const override {
    return texts_[static_cast<std::size_t>(token)];
  }
  bool IsControl(Token) const override { return false; }
  bool IsEndOfGeneration(Token) const override { return false; }
  std::vector<Token> end_tokens() const override { return {}; }
  std::optional<Token> bos() const override { return std::nullopt; }
  std::optional<Token> eos() const override { return std::nullopt; }
  bool add_bos() const override { return false; }
  bool add_eos() const override { return false; }
  bool adds_space_prefix() const override { return false; }
  std::string description() const override { return "letters"; }

 private:
  int vocabulary_;
  std::vector<std::string> texts_;
};

}  // namespace foretoken::text
