// SPDX-License-Identifier: Apache-2.0
// WordPiece (BERT). The text is lowered and loses its accents, if the file says so, and falls into
// words at spaces; punctuation marks and ideographs are words of their own. A word becomes the
// longest token that it begins with, then the longest that its rest begins with, and so on; if
// that fails, the word is the unknown token. In the vocabulary a U+2581 begins a word.
#include "base/work_count.h"
#include "text/tokenizer/encode/codec.h"
#include "text/tokenizer/encode/prefix_index.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

struct Block {
  char32_t first;
  char32_t last;
};
// The blocks that BERT's tokenizers take for Chinese.
constexpr Block kIdeographs[] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                 {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F},
                                 {0x2B920, 0x2CEAF}, {0x2F800, 0x2FA1F}};

bool IsIdeograph(char32_t code) {
  for (const Block& block : kIdeographs) {
    if (block.first <= code && code <= block.last) return true;
  }
  return false;
}

class WordPieceCodec final : public Codec {
 public:
  explicit WordPieceCodec(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
    std::vector<PrefixIndex::Entry> entries;
    for (Token token = 0; token < vocabulary.size(); ++token) {
      const std::string& text = vocabulary.texts[token];
      if (!text.empty() && text.size() <= kMaxPiece) entries.push_back({text, token});
    }
    pieces_ = PrefixIndex(std::move(entries));
  }

  void Encode(std::string_view text, bool, EncodeScratch&,
              std::vector<Token>& tokens) const override {
    std::string word(kSpaceMark);
    const auto end_word = [&] {
      if (word.size() > kSpaceMark.size()) EncodeWord(word, tokens);
      word = kSpaceMark;
    };
    while (!text.empty()) {
      CountWork();
      const Utf8Character character = ReadUtf8(text);
      const bool valid = character.state == Utf8State::kValid;
      text.remove_prefix(valid ? character.size : 1);
      if (!valid) continue;
      const char32_t code =
          vocabulary_.strip_accents ? WithoutAccents(character.code) : character.code;
      const CharacterClass kind = ClassOf(code);
      if (kind == CharacterClass::kWhitespace) {
        end_word();
      } else if (!IsDropped(code, kind)) {
        const bool alone = kind == CharacterClass::kPunctuation || IsIdeograph(code) ||
                           (code < 0x7F && kind == CharacterClass::kSymbol);
        if (alone) end_word();
        word += EncodeUtf8(vocabulary_.lowercase ? InCase(code, LetterCase::kLower) : code);
        if (alone) end_word();
      }
    }
    end_word();
  }

  std::string Piece(Token token) const override {
    return ReplaceAll(vocabulary_.texts[token], kSpaceMark, " ");
  }

  std::string name() const override { return "WordPiece"; }

 private:
  bool IsDropped(char32_t code, CharacterClass kind) const {
    return code == 0 || code == 0xFFFD || kind == CharacterClass::kControl ||
           (vocabulary_.strip_accents && kind == CharacterClass::kMark);
  }

  void EncodeWord(std::string_view word, std::vector<Token>& tokens) const {
    const std::size_t before = tokens.size();
    while (!word.empty()) {
      Token token = kNoToken;
      std::size_t size = 0;
      PrefixIndex::Node node = pieces_.Root();
      for (std::size_t end = 0; end < word.size() && pieces_.Step(node, word[end]);) {
        ++end;
        CountWork();
        if (pieces_.At(node) == kNoToken) continue;
        token = pieces_.At(node);
        size = end;
      }
      if (token == kNoToken) {
        tokens.resize(before);
        if (vocabulary_.unknown != kNoToken) tokens.push_back(vocabulary_.unknown);
        return;
      }
      tokens.push_back(token);
      word.remove_prefix(size);
    }
  }

  const Vocabulary& vocabulary_;
  PrefixIndex pieces_;
};

}  // namespace

std::unique_ptr<Codec> MakeWordPieceCodec(const Vocabulary& vocabulary) {
  return std::make_unique<WordPieceCodec>(vocabulary);
}

}  // namespace foretoken::text
