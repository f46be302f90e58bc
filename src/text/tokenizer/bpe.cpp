// SPDX-License-Identifier: Apache-2.0
// Byte-level BPE. The pre-tokenizer cuts the text into words. Every byte of a word is a symbol,
// written as one printable character (GPT-2's alphabet: printable Latin-1 bytes as they are, the
// other 68 as U+0100..U+0143). Then the neighbours with the best merge rank merge; of equal ones
// the leftmost. So any bytes can be encoded, and no two texts give the same symbols.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>

#include "text/tokenizer/codec.h"
#include "text/tokenizer/merge.h"
#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/string_table.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

constexpr char32_t kFirstSubstitute = 0x100;
constexpr std::size_t kMaxText = std::size_t{1}
                                 << 28;  // lengths have 32 bits; longer texts are cut

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

// (left piece, right piece) to their merge; open addressing, at most half full.
class MergeTable {
 public:
  explicit MergeTable(std::size_t capacity) {
    std::size_t n_slots = 16;
    while (n_slots < capacity * 2) n_slots *= 2;
    slots_.resize(n_slots);
  }

  // Keeps the first merge of a pair.
  void Insert(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& slot = slots_[Probe(Key(left, right))];
    if (slot.merge.rank == kNoMerge) slot = {Key(left, right), merge};
  }

  Merge Find(std::int32_t left, std::int32_t right) const {
    return slots_[Probe(Key(left, right))].merge;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge = {kNoMerge, 0};
  };

  static std::uint64_t Key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }

  std::size_t Probe(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::uint64_t hash = key * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
      if (slots_[i].merge.rank == kNoMerge || slots_[i].key == key) return i;
    }
  }

  std::vector<Slot> slots_;
};

class ByteLevelCodec final : public Codec {
 public:
  ByteLevelCodec(const Vocabulary& vocabulary, const std::vector<std::string>& merges,
                 const std::string& pre_tokenizer)
      : vocabulary_(vocabulary),
        pattern_(FindPattern(pre_tokenizer)),
        pre_name_(pre_tokenizer.empty() ? "default" : pre_tokenizer),
        pretokenizer_(pattern_),
        merges_(merges.size()) {
    for (Token token = 0; token < vocabulary.size(); ++token) {
      const std::string& text = vocabulary.texts[token];
      if (vocabulary.IsText(token) && !text.empty()) pieces_.Insert(text, token);
    }
    for (std::size_t byte = 0; byte < 256; ++byte) {
      byte_pieces_[byte] = Intern(TheAlphabet().characters[byte]);
    }
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      AddMerge(merges[rank], static_cast<std::int32_t>(rank));
    }
  }

  void Encode(std::string_view text, bool, std::vector<Token>& tokens) const override {
    PairMerger merger;
    for (; !text.empty(); text.remove_prefix(std::min(text.size(), kMaxText))) {
      EncodeWords(text.substr(0, kMaxText), merger, tokens);
    }
  }

  std::string Piece(Token token) const override {
    std::string_view text = vocabulary_.texts[token];
    const TokenType type = vocabulary_.types[token];
    if (type == TokenType::kUserDefined) return std::string(text);
    if (type == TokenType::kByte) {
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
    return pattern_.known
               ? fmt::format("byte-level BPE ({})", pre_name_)
               : fmt::format("byte-level BPE (default pattern, \"{}\" is unknown)", pre_name_);
  }

 private:
  static const std::string& CharacterOf(char byte) {
    return TheAlphabet().characters[static_cast<unsigned char>(byte)];
  }

  // The number of a piece. Pieces that are not in the vocabulary get numbers past its end, because
  // merges may pass through them.
  std::int32_t Intern(std::string_view text) {
    const std::int32_t found = pieces_.Find(text);
    if (found != StringTable::kAbsent) return found;
    outsiders_.emplace_back(text);
    const auto number = vocabulary_.size() + static_cast<std::int32_t>(outsiders_.size()) - 1;
    pieces_.Insert(outsiders_.back(), number);
    return number;
  }

  void AddMerge(std::string_view line, std::int32_t rank) {
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size()) return;
    const std::string_view left = line.substr(0, space);
    const std::string_view right = line.substr(space + 1);
    const std::int32_t left_piece = Intern(left);
    const std::int32_t right_piece = Intern(right);
    const std::int32_t merged = Intern(std::string(left) + std::string(right));
    merges_.Insert(left_piece, right_piece, {rank, merged});
  }

  void EncodeWords(std::string_view text, PairMerger& merger, std::vector<Token>& tokens) const {
    std::string spelled;
    for (const std::uint32_t length : pretokenizer_.Split(text)) {
      const std::string_view word = text.substr(0, length);
      text.remove_prefix(length);
      if (pattern_.ignore_merges) {
        spelled.clear();
        for (const char byte : word) spelled += CharacterOf(byte);
        const std::int32_t piece = pieces_.Find(spelled);
        if (piece != StringTable::kAbsent && vocabulary_.Has(piece)) {
          tokens.push_back(piece);
          continue;
        }
      }
      EncodeWord(word, merger, tokens);
    }
  }

  void EncodeWord(std::string_view word, PairMerger& merger, std::vector<Token>& tokens) const {
    merger.Clear();
    for (const char byte : word) merger.Add(1, byte_pieces_[static_cast<unsigned char>(byte)]);
    merger.Run([&](const Symbol& left, const Symbol& right) {
      return merges_.Find(left.piece, right.piece);
    });
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
  Pattern pattern_;
  std::string pre_name_;
  Pretokenizer pretokenizer_;
  StringTable pieces_;                 // text to piece; a piece in the vocabulary is its token
  std::deque<std::string> outsiders_;  // texts of the other pieces
  std::array<std::int32_t, 256> byte_pieces_{};
  MergeTable merges_;
};

}  // namespace

std::unique_ptr<Codec> MakeByteLevelCodec(const Vocabulary& vocabulary,
                                          const std::vector<std::string>& merges,
                                          const std::string& pre_tokenizer) {
  return std::make_unique<ByteLevelCodec>(vocabulary, merges, pre_tokenizer);
}

}  // namespace foretoken::text
