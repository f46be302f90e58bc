// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/vocabulary.h: what a GGUF file says about its tokens, checked and completed once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "foretoken/result.h"
#include "formats/metadata.h"
#include "text/tokenizer/split/patterns.h"

namespace foretoken::text {

enum class TokenType : std::uint8_t {  // the numbers of tokenizer.ggml.token_type
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

enum class Family {
  kSentencePiece,  // merges by score
  kByteLevel,      // ranked merges of bytes
  kCharacters,     // ranked merges of characters
  kUnigram,
  kWordPiece,
};

// Immutable once read. The encoders keep views into it, so it must not move or change.
struct Vocabulary {
  Family family = Family::kSentencePiece;
  std::vector<std::string> texts;  // [n_tokens], as the file spells them
  std::vector<TokenType> types;    // [n_tokens]
  std::vector<float> scores;       // [n_tokens], 0 if the file has none; never NaN
  Token bos = kNoToken;
  Token eos = kNoToken;
  Token unknown = kNoToken;
  Token separator = kNoToken;  // WordPiece: follows the text where other families have EOS
  bool add_bos = false;
  bool add_eos = false;
  bool add_separator = false;
  bool add_space_prefix = false;
  bool prefix_once = false;               // at a text's beginning only, not behind special tokens
  bool prefix_if_none = false;            // only where the text does not begin with a space itself
  bool remove_extra_whitespaces = false;  // Unigram: spaces merge, and none is at an end
  bool lowercase = false;                 // WordPiece
  bool strip_accents = false;             // WordPiece
  bool compose = false;  // texts are brought to Unicode's composed form (NFC) first
  bool exact = false;    // the pattern's exact expressions
  Pattern pattern;       // of the two families with ranked merges
  std::string pattern_name;
  std::vector<Token> end_tokens;  // ascending
  std::vector<Token> never_drawn;
  // Special tokens that swallow the white space before or behind them, ascending.
  std::vector<Token> strip_before;
  std::vector<Token> strip_after;

  int size() const { return static_cast<int>(texts.size()); }
  bool Has(std::int64_t token) const { return token >= 0 && token < size(); }

  // Tokens that plain text may become. Control, unknown and byte tokens only look like text: "<s>"
  // typed by a user must not become BOS, and "<0x0A>" must come back as it was typed.
  bool IsText(Token token) const {
    const TokenType type = types[token];
    return type != TokenType::kControl && type != TokenType::kUnknown && type != TokenType::kByte;
  }

  bool IsByte(Token token) const { return types[token] == TokenType::kByte; }

  // Whether an encoder puts a space before the first word.
  bool BeginsWithSpace() const {
    return add_space_prefix || family == Family::kWordPiece ||
           (family == Family::kUnigram && remove_extra_whitespaces);
  }

  std::string DescribePattern() const;  // "llama-bpe"

  // Tokens that are searched in the text before any encoding. A user-defined token that is spelled
  // with SentencePiece's space mark is not one of them: it stands for spaces, and the merges find
  // it where the spaces are.
  bool IsSpecial(Token token) const;
};

// The value of "<0x41>", or -1 if the text is not of that form.
int ByteOfTokenText(std::string_view text);

// Errors: as Tokenizer::Load.
[[nodiscard]] Result<Vocabulary> ReadVocabulary(const formats::Metadata& metadata);

}  // namespace foretoken::text
