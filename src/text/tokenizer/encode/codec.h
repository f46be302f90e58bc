// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/encode/codec.h: what the tokenizer families do differently: plain text to tokens, and
// one token to its bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/tokenizer/encode/character_map.h"
#include "text/tokenizer/encode/merge.h"
#include "text/tokenizer/encode/word_cache.h"
#include "text/tokenizer/vocabulary.h"

namespace foretoken::text {

// What the encoders keep between the parts of one text.
struct EncodeScratch {
  explicit EncodeScratch(std::size_t text_size) : words(text_size) {}
  WordCache words;
  PairMerger merger;
};

// Immutable; any thread may use it. Keeps a reference to the vocabulary.
class Codec {
 public:
  virtual ~Codec() = default;

  // Appends the tokens of a part of a text, which is not empty and has no special tokens.
  // space_before: put a space in front, as SentencePiece does.
  virtual void Encode(std::string_view text, bool space_before, EncodeScratch& scratch,
                      std::vector<Token>& tokens) const = 0;

  // The bytes of a token that is neither control nor unknown.
  virtual std::string Piece(Token token) const = 0;

  virtual std::string name() const = 0;  // "SentencePiece BPE"
};

// Unigram and WordPiece never make a token whose text is longer than this, in bytes: their time
// grows with the longest token.
inline constexpr std::size_t kMaxPiece = 1024;

std::unique_ptr<Codec> MakeSentencePieceCodec(const Vocabulary& vocabulary);

// merges: tokenizer.ggml.merges, best first, each "left right"; lines of another form are ignored.
std::unique_ptr<Codec> MakeByteLevelCodec(const Vocabulary& vocabulary,
                                          const std::vector<std::string>& merges);
std::unique_ptr<Codec> MakeCharacterCodec(const Vocabulary& vocabulary,
                                          const std::vector<std::string>& merges);

std::unique_ptr<Codec> MakeUnigramCodec(const Vocabulary& vocabulary, CharacterMap map);
std::unique_ptr<Codec> MakeWordPieceCodec(const Vocabulary& vocabulary);

}  // namespace foretoken::text
