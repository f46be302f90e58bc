// SPDX-License-Identifier: Apache-2.0
// SentencePiece Unigram. The text is normalised (a compiled map of characters, spaces as U+2581).
// Among all ways to write it as tokens, the one with the greatest sum of scores is taken. A
// character that is no token costs 10 more than the worst token and becomes the unknown token.
#include <algorithm>
#include <limits>

#include "base/work_count.h"
#include "text/tokenizer/encode/character_map.h"
#include "text/tokenizer/encode/codec.h"
#include "text/tokenizer/encode/prefix_index.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

constexpr std::size_t kMaxUnigramText = std::size_t{1} << 26;  // a longer normalised text is cut
constexpr double kUnknownPenalty = 10.0;

class UnigramCodec final : public Codec {
 public:
  UnigramCodec(const Vocabulary& vocabulary, CharacterMap map)
      : vocabulary_(vocabulary), map_(std::move(map)) {
    std::vector<PrefixIndex::Entry> entries;
    float least = std::numeric_limits<float>::max();
    for (Token token = 0; token < vocabulary.size(); ++token) {
      const std::string& text = vocabulary.texts[token];
      const TokenType type = vocabulary.types[token];
      if (type == TokenType::kNormal) least = std::min(least, vocabulary.scores[token]);
      const bool spelled = type == TokenType::kNormal || type == TokenType::kUserDefined ||
                           type == TokenType::kUnused;
      if (spelled && !text.empty() && text.size() <= kMaxPiece) entries.push_back({text, token});
    }
    pieces_ = PrefixIndex(std::move(entries));
    unknown_score_ = static_cast<float>(least - kUnknownPenalty);
  }

  void Encode(std::string_view text, bool space_before, EncodeScratch&,
              std::vector<Token>& tokens) const override {
    const std::string normalised = Normalised(text, space_before);
    std::string_view rest = normalised;
    for (; !rest.empty(); rest.remove_prefix(std::min(rest.size(), kMaxUnigramText))) {
      EncodeNormalised(rest.substr(0, kMaxUnigramText), tokens);
    }
  }

  std::string Piece(Token token) const override {
    const std::string& text = vocabulary_.texts[token];
    if (vocabulary_.IsByte(token)) return std::string(1, static_cast<char>(ByteOfTokenText(text)));
    return ReplaceAll(text, kSpaceMark, " ");
  }

  std::string name() const override { return "SentencePiece Unigram"; }

 private:
  // The best way to write a beginning of the text.
  struct Best {
    double score = -std::numeric_limits<double>::max();
    std::uint32_t begin = 0;  // of its last token
    Token token = kNoToken;   // kNoToken: unknown
  };

  std::string Normalised(std::string_view text, bool space_before) const {
    std::string out;
    out.reserve(text.size() * 3);
    const bool merges_spaces = vocabulary_.remove_extra_whitespaces;
    bool in_word = false;
    bool begun = !space_before;
    const auto append = [&](std::string_view part) {
      for (const char c : part) {
        if (c == ' ') {
          in_word = false;
          if (!merges_spaces) out += kSpaceMark;
          continue;
        }
        if (!in_word && (!begun || merges_spaces)) out += kSpaceMark;
        begun = begun || !in_word;
        in_word = true;
        out.push_back(c);
      }
    };
    while (!text.empty()) {
      CountWork();
      const CharacterMap::Match match = map_.Find(text);
      const Utf8Character character = ReadUtf8(text);
      if (match.size > 0) {
        append(match.replacement);
        text.remove_prefix(match.size);
      } else if (character.state == Utf8State::kValid) {
        append(text.substr(0, character.size));
        text.remove_prefix(character.size);
      } else {
        append(kReplacementCharacter);
        text.remove_prefix(1);
      }
    }
    return out;
  }

  void EncodeNormalised(std::string_view text, std::vector<Token>& tokens) const {
    std::vector<Best> best(text.size() + 1);
    best[0].score = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      CountWork();
      const std::size_t size = ReadUtf8(text.substr(begin)).size;
      if (!AddTokens(text, begin, size, best)) {
        Improve(best[begin].score + unknown_score_, begin, kNoToken, best[begin + size]);
      }
      begin += size;
    }
    const std::size_t first = tokens.size();
    bool after_unknown = false;
    for (std::size_t end = text.size(); end > 0; end = best[end].begin) {
      const bool unknown = best[end].token == kNoToken;
      const Token token = unknown ? vocabulary_.unknown : best[end].token;
      if (token != kNoToken && !(unknown && after_unknown)) tokens.push_back(token);
      after_unknown = unknown;
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
  }

  // Tries all tokens that begin here. Returns whether one of them is the character of `size` bytes.
  bool AddTokens(std::string_view text, std::size_t begin, std::size_t size,
                 std::vector<Best>& best) const {
    bool has_character = false;
    PrefixIndex::Node node = pieces_.Root();
    for (std::size_t end = begin; end < text.size() && pieces_.Step(node, text[end]);) {
      ++end;
      CountWork();
      const Token token = pieces_.At(node);
      if (token == kNoToken) continue;
      has_character |= end - begin == size;
      const bool named = vocabulary_.types[token] == TokenType::kUserDefined;
      const double score = named ? 0.0 : static_cast<double>(vocabulary_.scores[token]);
      Improve(best[begin].score + score, begin, token, best[end]);
    }
    return has_character;
  }

  static void Improve(double score, std::size_t begin, Token token, Best& best) {
    if (score > best.score) best = {score, static_cast<std::uint32_t>(begin), token};
  }

  const Vocabulary& vocabulary_;
  CharacterMap map_;
  PrefixIndex pieces_;
  double unknown_score_;
};

}  // namespace

std::unique_ptr<Codec> MakeUnigramCodec(const Vocabulary& vocabulary, CharacterMap map) {
  return std::make_unique<UnigramCodec>(vocabulary, std::move(map));
}

}  // namespace foretoken::text
