// SPDX-License-Identifier: Apache-2.0
// BPE on characters (Gemma 4 and its relatives). Spaces become U+2581, and every character is a
// symbol. Then the neighbours with the best merge rank merge, within a line; of equal ones the
// leftmost. Characters that are not tokens at the end become byte tokens.
#include <fmt/format.h>

#include <algorithm>

#include "text/tokenizer/encode/byte_pairs.h"
#include "text/tokenizer/encode/byte_tokens.h"
#include "text/tokenizer/encode/codec.h"
#include "text/tokenizer/encode/merge_rules.h"
#include "text/tokenizer/split/pretokenize.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

// Lengths have 32 bits: longer texts are cut.
constexpr std::size_t kMaxCharacterText = std::size_t{1} << 28;

class CharacterCodec final : public Codec {
 public:
  CharacterCodec(const Vocabulary& vocabulary, const std::vector<std::string>& merges)
      : vocabulary_(vocabulary),
        marked_(vocabulary.pattern.symbols == Symbols::kMarkedCharacters),
        pretokenizer_(*vocabulary.pattern.rules, vocabulary.exact),
        rules_(vocabulary, merges),
        byte_tokens_(vocabulary) {
    for (const std::string& line : merges) {
      const MergeLine merge(line);
      byte_pairs_.Add(merge.left, merge.right);
    }
  }

  void Encode(std::string_view text, bool, EncodeScratch& scratch,
              std::vector<Token>& tokens) const override {
    // A U+2581 that the user typed is kept apart from spaces, if there are byte tokens to write it
    // with.
    const bool apart = marked_ && byte_tokens_.CanSpell(kSpaceMark);
    while (!text.empty()) {
      const std::size_t mark = apart ? text.find(kSpaceMark) : std::string_view::npos;
      const std::size_t size = std::min({mark, text.size(), kMaxCharacterText});
      EncodeWords(marked_ ? ReplaceAll(text.substr(0, size), " ", kSpaceMark)
                          : std::string(text.substr(0, size)),
                  scratch, tokens);
      text.remove_prefix(size);
      if (size == mark) {
        byte_tokens_.Spell(kSpaceMark, tokens);
        text.remove_prefix(kSpaceMark.size());
      }
    }
  }

  std::string Piece(Token token) const override {
    const std::string& text = vocabulary_.texts[token];
    if (vocabulary_.IsByte(token)) return std::string(1, static_cast<char>(ByteOfTokenText(text)));
    return marked_ ? ReplaceAll(text, kSpaceMark, " ") : text;
  }

  std::string name() const override {
    return fmt::format("character BPE ({})", vocabulary_.DescribePattern());
  }

 private:
  void EncodeWords(std::string_view text, EncodeScratch& scratch,
                   std::vector<Token>& tokens) const {
    for (const std::uint32_t length : pretokenizer_.Split(text)) {
      const std::string_view word = text.substr(0, length);
      text.remove_prefix(length);
      EncodeWord(word, scratch, tokens);
    }
  }

  void EncodeWord(std::string_view word, EncodeScratch& scratch, std::vector<Token>& tokens) const {
    if (vocabulary_.pattern.whole_newlines && word[0] == '\n') {
      const std::int32_t piece = rules_.Find(word);
      if (vocabulary_.Has(piece)) {
        tokens.push_back(piece);
        return;
      }
    }
    if (vocabulary_.pattern.mark_lines && word[0] != '\n' && !word.starts_with(kSpaceMark)) {
      EncodeParts(std::string(kSpaceMark).append(word), scratch, tokens);
    } else {
      EncodeParts(word, scratch, tokens);
    }
  }

  // Cuts the word where no merge joins its bytes.
  void EncodeParts(std::string_view word, EncodeScratch& scratch,
                   std::vector<Token>& tokens) const {
    while (!word.empty()) {
      const std::string_view part = word.substr(0, byte_pairs_.JoinedSize(word));
      scratch.words.Append(part, tokens, [&] { EncodePart(part, scratch.merger, tokens); });
      word.remove_prefix(part.size());
    }
  }

  void EncodePart(std::string_view part, PairMerger& merger, std::vector<Token>& tokens) const {
    merger.Clear();
    for (std::size_t at = 0; at < part.size();) {
      const std::size_t size = SizeOfCharacter(part, at);
      merger.Add(static_cast<std::uint32_t>(size), rules_.Find(part.substr(at, size)));
      at += size;
    }
    if (merger.n_symbols() > 1) {
      merger.Run(
          [&](const Symbol& left, const Symbol& right) { return rules_.FindMerge(left, right); });
    }
    merger.ForEach([&](const Symbol& symbol) {
      const std::string_view text = part.substr(symbol.begin, symbol.size);
      if (vocabulary_.Has(symbol.piece)) {
        tokens.push_back(symbol.piece);
      } else if (marked_ && byte_tokens_.CanSpell(" ")) {
        byte_tokens_.Spell(ReplaceAll(text, kSpaceMark, " "), tokens);
      } else {
        byte_tokens_.Spell(text, tokens);
      }
    });
  }

  const Vocabulary& vocabulary_;
  bool marked_;
  Pretokenizer pretokenizer_;
  MergeRules rules_;
  ByteTokens byte_tokens_;
  BytePairs byte_pairs_;  // bytes that some merge joins
};

}  // namespace

std::unique_ptr<Codec> MakeCharacterCodec(const Vocabulary& vocabulary,
                                          const std::vector<std::string>& merges) {
  return std::make_unique<CharacterCodec>(vocabulary, merges);
}

}  // namespace foretoken::text
