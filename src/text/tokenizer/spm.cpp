// SPDX-License-Identifier: Apache-2.0
// SentencePiece BPE. Spaces become U+2581, every character a symbol. Then the neighbours merge
// whose joined text is the token with the highest score; of equal ones the leftmost. Characters
// that are not tokens at the end become byte tokens.
//
// A merge can only join two bytes that are adjacent in some token. So the text is cut wherever they
// are not (in most vocabularies before every space), and each part is encoded alone: the result is
// the same, and the heap stays small.
#include <algorithm>
#include <array>
#include <bitset>
#include <functional>

#include "text/tokenizer/codec.h"
#include "text/tokenizer/merge.h"
#include "text/tokenizer/string_table.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

// Symbols are counted with 32 bits; a longer text without a cut is cut here.
constexpr std::size_t kMaxWord = std::size_t{1} << 28;

class SentencePieceCodec final : public Codec {
 public:
  explicit SentencePieceCodec(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    byte_tokens_.fill(kNoToken);
    for (Token token = 0; token < vocabulary.size(); ++token) {
      const std::string& text = vocabulary.texts[token];
      if (vocabulary.types[token] == TokenType::kByte) {
        Token& byte_token = byte_tokens_[ByteOfTokenText(text)];
        if (byte_token == kNoToken) byte_token = token;
      }
      if (!vocabulary.IsText(token) || text.empty()) continue;
      tokens_.Insert(text, token);
      for (std::size_t i = 1; i < text.size(); ++i) neighbours_.set(Pair(text[i - 1], text[i]));
    }
    RankScores();
  }

  void Encode(std::string_view text, bool space_before, std::vector<Token>& tokens) const override {
    PairMerger merger;
    std::string escaped(space_before ? kSpaceMark : std::string_view());
    // A U+2581 that the user typed is kept apart from spaces, if there are byte tokens to write it
    // with.
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t mark =
          std::min(CanSpell(kSpaceMark) ? text.find(kSpaceMark, at) : text.size(), text.size());
      Escape(text.substr(at, mark - at), escaped);
      EncodeEscaped(escaped, merger, tokens);
      escaped.clear();
      if (mark < text.size()) Spell(kSpaceMark, tokens);
      at = mark + (mark < text.size() ? kSpaceMark.size() : 1);
    }
  }

  std::string Piece(Token token) const override {
    const std::string& text = vocabulary_.texts[token];
    if (vocabulary_.types[token] == TokenType::kByte) {
      return std::string(1, static_cast<char>(ByteOfTokenText(text)));
    }
    return ReplaceAll(text, kSpaceMark, " ");
  }

  std::string name() const override { return "SentencePiece BPE"; }

 private:
  static std::size_t Pair(char left, char right) {
    return static_cast<std::size_t>(static_cast<unsigned char>(left)) << 8 |
           static_cast<unsigned char>(right);
  }

  void RankScores() {
    std::vector<float> scores = vocabulary_.scores;
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

  void EncodeEscaped(std::string_view text, PairMerger& merger, std::vector<Token>& tokens) const {
    for (std::size_t begin = 0; begin < text.size();) {
      merger.Clear();
      std::size_t end = begin;
      do {
        const std::size_t size = ReadUtf8(text.substr(end)).size;
        merger.Add(static_cast<std::uint32_t>(size), tokens_.Find(text.substr(end, size)));
        end += size;
      } while (end < text.size() && end - begin < kMaxWord &&
               neighbours_.test(Pair(text[end - 1], text[end])));
      EncodeWord(text.substr(begin, end - begin), merger, tokens);
      begin = end;
    }
  }

  void EncodeWord(std::string_view word, PairMerger& merger, std::vector<Token>& tokens) const {
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
      Spell(character == kSpaceMark && CanSpell(" ") ? " " : character, tokens);
    });
  }

  // The token that stands for one byte: <0xXX>, or a token of just this byte.
  Token ByteToken(char byte) const {
    const Token token = byte_tokens_[static_cast<unsigned char>(byte)];
    return token != kNoToken ? token : tokens_.Find(std::string_view(&byte, 1));
  }

  bool CanSpell(std::string_view bytes) const {
    return std::all_of(bytes.begin(), bytes.end(),
                       [&](char byte) { return ByteToken(byte) != kNoToken; });
  }

  // Writes bytes as byte tokens; if one is missing, all of them as one unknown token.
  void Spell(std::string_view bytes, std::vector<Token>& tokens) const {
    if (CanSpell(bytes)) {
      for (const char byte : bytes) tokens.push_back(ByteToken(byte));
    } else if (vocabulary_.unknown != kNoToken) {
      tokens.push_back(vocabulary_.unknown);
    }
  }

  const Vocabulary& vocabulary_;
  StringTable tokens_;                    // text to token
  std::vector<std::int32_t> ranks_;       // [n_tokens], 0 for the highest score
  std::array<Token, 256> byte_tokens_{};  // kNoToken if there is none
  std::bitset<65536> neighbours_;         // pairs of bytes that are adjacent inside tokens
};

}  // namespace

std::unique_ptr<Codec> MakeSentencePieceCodec(const Vocabulary& vocabulary) {
  return std::make_unique<SentencePieceCodec>(vocabulary);
}

}  // namespace foretoken::text
