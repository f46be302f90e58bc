// SPDX-License-Identifier: Apache-2.0
// SentencePiece BPE. Spaces become U+2581, every character a symbol. Then the neighbours merge
// whose joined text is the token with the highest score; of equal ones the leftmost. Characters
// that are not tokens at the end become byte tokens.
#include <algorithm>
#include <array>
#include <functional>

#include "text/tokenizer/encode/byte_pairs.h"
#include "text/tokenizer/encode/byte_tokens.h"
#include "text/tokenizer/encode/codec.h"
#include "text/tokenizer/encode/merge.h"
#include "text/tokenizer/encode/string_table.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

class SentencePieceCodec final : public Codec {
 public:
  explicit SentencePieceCodec(const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), byte_tokens_(vocabulary) {
    for (Token token = 0; token < vocabulary.size(); ++token) {
      const std::string& text = vocabulary.texts[token];
      if (!vocabulary.IsText(token) || text.empty()) continue;
      tokens_.Insert(text, token);
      byte_pairs_.Add(text);
    }
    for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
      const char character = static_cast<char>(byte);
      bytes_[byte] = tokens_.Find({&character, 1});
    }
    RankScores();
  }

  void Encode(std::string_view text, bool space_before, EncodeScratch& scratch,
              std::vector<Token>& tokens) const override {
    std::string escaped(space_before ? kSpaceMark : std::string_view());
    // A U+2581 that the user typed is kept apart from spaces, if there are byte tokens to write it
    // with.
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t mark = std::min(
          byte_tokens_.CanSpell(kSpaceMark) ? text.find(kSpaceMark, at) : text.size(), text.size());
      Escape(text.substr(at, mark - at), escaped);
      EncodeEscaped(escaped, scratch, tokens);
      escaped.clear();
      if (mark < text.size()) byte_tokens_.Spell(kSpaceMark, tokens);
      at = mark + (mark < text.size() ? kSpaceMark.size() : 1);
    }
  }

  std::string Piece(Token token) const override {
    const std::string& text = vocabulary_.texts[token];
    if (vocabulary_.IsByte(token)) {
      return std::string(1, static_cast<char>(ByteOfTokenText(text)));
    }
    return ReplaceAll(text, kSpaceMark, " ");
  }

  std::string name() const override { return "SentencePiece BPE"; }

 private:
  void RankScores() {
    std::vector<float> scores = vocabulary_.scores;
    // Most files have them in order.
    if (!std::is_sorted(scores.begin(), scores.end(), std::greater<>()))
      std::sort(scores.begin(), scores.end(), std::greater<>());
    scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
    ranks_.reserve(vocabulary_.scores.size());
    for (const float score : vocabulary_.scores) {
      const auto found = std::lower_bound(scores.begin(), scores.end(), score, std::greater<>());
      ranks_.push_back(static_cast<std::int32_t>(found - scores.begin()));
    }
  }

  static void Escape(std::string_view text, std::string& escaped) {
    escaped.reserve(escaped.size() + text.size() + text.size() / 2);
    for (const char c : text) {
      if (c == ' ') {
        escaped.append(kSpaceMark);
      } else {
        escaped.push_back(c);
      }
    }
  }

  void EncodeEscaped(std::string_view text, EncodeScratch& scratch,
                     std::vector<Token>& tokens) const {
    while (!text.empty()) {
      const std::string_view word = text.substr(0, byte_pairs_.JoinedSize(text));
      scratch.words.Append(word, tokens, [&] { EncodeWord(word, scratch.merger, tokens); });
      text.remove_prefix(word.size());
    }
  }

  void EncodeWord(std::string_view word, PairMerger& merger, std::vector<Token>& tokens) const {
    merger.Clear();
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t size = SizeOfCharacter(word, at);
      const Token token = size == 1 ? bytes_[static_cast<unsigned char>(word[at])]
                                    : tokens_.Find(word.substr(at, size));
      merger.Add(static_cast<std::uint32_t>(size), token);
      at += size;
    }
    if (merger.n_symbols() > 1) {
      merger.Run([&](const Symbol& left, const Symbol& right) -> Merge {
        const Token token = tokens_.Find(word.substr(left.begin, left.size + right.size));
        return token == StringTable::kAbsent ? Merge{kNoMerge, 0} : Merge{ranks_[token], token};
      });
    }
    merger.ForEach([&](const Symbol& symbol) {
      if (symbol.piece != StringTable::kAbsent) {
        tokens.push_back(symbol.piece);
        return;
      }
      const std::string_view character = word.substr(symbol.begin, symbol.size);
      byte_tokens_.Spell(character == kSpaceMark && byte_tokens_.CanSpell(" ") ? " " : character,
                         tokens);
    });
  }

  const Vocabulary& vocabulary_;
  StringTable tokens_;               // text to token
  std::array<Token, 256> bytes_{};   // texts of one byte
  std::vector<std::int32_t> ranks_;  // [n_tokens], 0 for the highest score
  ByteTokens byte_tokens_;
  BytePairs byte_pairs_;  // bytes that are adjacent inside tokens
};

}  // namespace

std::unique_ptr<Codec> MakeSentencePieceCodec(const Vocabulary& vocabulary) {
  return std::make_unique<SentencePieceCodec>(vocabulary);
}

}  // namespace foretoken::text
