// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE. The pre-tokenizer cuts the text into words. Every byte of a word is a symbol,
// written as one printable character (GPT-2's alphabet: printable Latin-1 bytes as they are, the
// other 68 as U+0100..U+0143). Then the neighbours with the best merge rank merge; of equal ones
// the leftmost. So any bytes can be encoded, and no two texts give the same symbols.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/tokenizer/encode/codec.h"
#include "text/tokenizer/encode/merge_rules.h"
#include "text/tokenizer/split/pretokenize.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

constexpr char32_t kFirstSubstitute = 0x100;
// Lengths have 32 bits: longer texts are cut.
constexpr std::size_t kMaxByteText = std::size_t{1} << 28;

constexpr bool IsPrintableLatin1(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  Alphabet() {
    char32_t substitute = kFirstSubstitute;
    bytes.fill(-1);
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t code = IsPrintableLatin1(byte) ? byte : substitute++;
      characters[byte] = EncodeUtf8(code);
      bytes[code] = static_cast<std::int16_t>(byte);
    }
  }
  std::array<std::string, 256> characters;  // of each byte
  std::array<std::int16_t, 0x144> bytes{};  // for each code, -1 if it stands for no byte
};

const Alphabet& TheAlphabet() {
  static const Alphabet alphabet;
  return alphabet;
}

class ByteLevelCodec final : public Codec {
 public:
  ByteLevelCodec(const Vocabulary& vocabulary, const std::vector<std::string>& merges)
      : vocabulary_(vocabulary),
        pretokenizer_(*vocabulary.pattern.rules, vocabulary.exact),
        rules_(vocabulary, merges) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      byte_pieces_[byte] = rules_.Intern(TheAlphabet().characters[byte]);
    }
  }

  void Encode(std::string_view text, bool, EncodeScratch& scratch,
              std::vector<Token>& tokens) const override {
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), kMaxByteText))) {
      EncodeWords(text.substr(0, kMaxByteText), scratch, tokens);
    }
  }

  std::string Piece(Token token) const override {
    std::string_view text = vocabulary_.texts[token];
    const TokenType type = vocabulary_.types[token];
    if (type == TokenType::kUserDefined) return std::string(text);
    if (vocabulary_.IsByte(token)) {
      return std::string(1, static_cast<char>(ByteOfTokenText(text)));
    }
    const auto& bytes = TheAlphabet().bytes;
    std::string piece;
    while (!text.empty()) {
      const Utf8Character character = ReadUtf8(text);
      const bool known = character.state == Utf8State::kValid && character.code < bytes.size() &&
                         bytes[character.code] >= 0;
      if (known) {
        piece.push_back(static_cast<char>(bytes[character.code]));
      } else {
        piece.append(text.substr(0, character.size));
      }
      text.remove_prefix(character.size);
    }
    return piece;
  }

  std::string name() const override {
    return fmt::format("byte-level BPE ({})", vocabulary_.DescribePattern());
  }

 private:
  static const std::string& CharacterOf(char byte) {
    return TheAlphabet().characters[static_cast<unsigned char>(byte)];
  }

  void EncodeWords(std::string_view text, EncodeScratch& scratch,
                   std::vector<Token>& tokens) const {
    for (const std::uint32_t length : pretokenizer_.Split(text)) {
      const std::string_view word = text.substr(0, length);
      text.remove_prefix(length);
      scratch.words.Append(word, tokens, [&] { EncodeWord(word, scratch.merger, tokens); });
    }
  }

  void EncodeWord(std::string_view word, PairMerger& merger, std::vector<Token>& tokens) const {
    if (vocabulary_.pattern.ignore_merges) {
      std::string spelled;
      for (const char byte : word) spelled += CharacterOf(byte);
      const std::int32_t piece = rules_.Find(spelled);
      if (piece != StringTable::kAbsent && vocabulary_.Has(piece)) {
        tokens.push_back(piece);
        return;
      }
    }
    merger.Clear();
    for (const char byte : word) merger.Add(1, byte_pieces_[static_cast<unsigned char>(byte)]);
    merger.Run(
        [&](const Symbol& left, const Symbol& right) { return rules_.FindMerge(left, right); });
    merger.ForEach([&](const Symbol& symbol) {
      if (vocabulary_.Has(symbol.piece)) {
        tokens.push_back(symbol.piece);
      } else {
        Spell(word.substr(symbol.begin, symbol.size), tokens);
      }
    });
  }

  // Writes a piece that is not a token byte by byte.
  void Spell(std::string_view bytes, std::vector<Token>& tokens) const {
    for (const char byte : bytes) {
      const std::int32_t piece = byte_pieces_[static_cast<unsigned char>(byte)];
      const Token token = vocabulary_.Has(piece) ? piece : vocabulary_.unknown;
      if (token != kNoToken) tokens.push_back(token);
    }
  }

  const Vocabulary& vocabulary_;
  Pretokenizer pretokenizer_;
  MergeRules rules_;
  std::array<std::int32_t, 256> byte_pieces_{};
};

}  // namespace

std::unique_ptr<Codec> MakeByteLevelCodec(const Vocabulary& vocabulary,
                                          const std::vector<std::string>& merges) {
  return std::make_unique<ByteLevelCodec>(vocabulary, merges);
}

}  // namespace foretoken::text
