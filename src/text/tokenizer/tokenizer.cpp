// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/tokenizer/encode/codec.h"
#include "text/tokenizer/special_tokens.h"
#include "text/tokenizer/unicode.h"
#include "text/tokenizer/vocabulary.h"

namespace foretoken::text {
namespace {

// The vocabulary comes first: the other two keep references to it.
class GgufTokenizer final : public Tokenizer {
 public:
  explicit GgufTokenizer(Vocabulary vocabulary)
      : vocabulary_(std::move(vocabulary)), special_tokens_(vocabulary_) {}

  [[nodiscard]] Status MakeCodec(const formats::Metadata& metadata) {
    switch (vocabulary_.family) {
      case Family::kSentencePiece:
        codec_ = MakeSentencePieceCodec(vocabulary_);
        return {};
      case Family::kUnigram:
        return MakeUnigram(metadata);
      case Family::kWordPiece:
        codec_ = MakeWordPieceCodec(vocabulary_);
        return {};
      default:
        return MakeMerging(metadata);
    }
  }

  [[nodiscard]] Status MakeUnigram(const formats::Metadata& metadata) {
    constexpr std::string_view kKey = "tokenizer.ggml.precompiled_charsmap";
    CharacterMap map;
    if (const auto* bytes = metadata.Ints(kKey); bytes != nullptr) {
      FORETOKEN_TRY(map, CharacterMap::Read(*bytes));
    }
    codec_ = MakeUnigramCodec(vocabulary_, std::move(map));
    return {};
  }

  [[nodiscard]] Status MakeMerging(const formats::Metadata& metadata) {
    const auto* merges = metadata.Strings("tokenizer.ggml.merges");
    if (merges == nullptr) {
      return Fail(ErrorCode::kInvalidFile,
                  "tokenizer: tokenizer.ggml.merges is missing; BPE needs it, convert the "
                  "model anew");
    }
    if (merges->size() > kMaxMerges) {
      return Fail(
          ErrorCode::kInvalidFile,
          fmt::format("tokenizer: {} merges are more than the limit of {}; the file is damaged",
                      merges->size(), kMaxMerges));
    }
    codec_ = vocabulary_.family == Family::kByteLevel ? MakeByteLevelCodec(vocabulary_, *merges)
                                                      : MakeCharacterCodec(vocabulary_, *merges);
    return {};
  }

  std::vector<Token> Encode(std::string_view text, EncodeOptions options) const override {
    std::vector<Token> tokens;
    tokens.reserve(text.size() / 3 + 2);
    EncodeScratch scratch(text.size());
    if (options.add_special && vocabulary_.add_bos) tokens.push_back(vocabulary_.bos);
    EncodeText(text, options, scratch, tokens);
    if (options.add_special && vocabulary_.add_eos) tokens.push_back(vocabulary_.eos);
    if (options.add_special && vocabulary_.add_separator) tokens.push_back(vocabulary_.separator);
    return tokens;
  }

  std::vector<Token> EncodeParts(std::span<const TextPart> parts) const override {
    std::size_t size = 0;
    for (const TextPart& part : parts) size += part.text.size();
    std::vector<Token> tokens;
    EncodeScratch scratch(size);
    std::string text;  // since the last control token
    const auto flush = [&] {
      const bool continues = vocabulary_.prefix_once && !tokens.empty();
      EncodeText(text, {.continues = continues}, scratch, tokens);
      text.clear();
    };
    for (const TextPart& part : parts) {
      if (!part.trusted) {
        text += part.text;
        continue;
      }
      for (const Fragment& fragment : special_tokens_.Split(part.text, true)) {
        // User-defined tokens are found again in the text, of which they may be more than a part.
        const bool control = fragment.token != kNoToken &&
                             vocabulary_.types[fragment.token] != TokenType::kUserDefined;
        if (!control) {
          text.append(part.text, fragment.begin, fragment.size);
          continue;
        }
        if (!text.empty()) flush();
        tokens.push_back(fragment.token);
      }
    }
    if (!text.empty()) flush();
    return tokens;
  }

  std::string Piece(Token token, bool special) const override {
    if (!vocabulary_.Has(token)) return {};
    const TokenType type = vocabulary_.types[token];
    if (type == TokenType::kControl || type == TokenType::kUnknown) {
      return special ? vocabulary_.texts[token] : std::string();
    }
    return codec_->Piece(token);
  }

  std::string Decode(std::span<const Token> tokens, bool special,
                     bool remove_leading_space) const override {
    std::string text;
    bool at_start = remove_leading_space && vocabulary_.BeginsWithSpace();
    for (const Token token : tokens) {
      const std::string piece = Piece(token, special);
      const bool drop = at_start && MayFollowSpacePrefix(token) && piece.starts_with(' ');
      if (vocabulary_.Has(token) && !IsControl(token)) at_start = false;
      text.append(piece, drop ? 1 : 0, std::string::npos);
    }
    return text;
  }

  int vocabulary_size() const override { return vocabulary_.size(); }

  const std::string& TokenText(Token token) const override {
    static const std::string kNone;
    return vocabulary_.Has(token) ? vocabulary_.texts[token] : kNone;
  }

  bool IsControl(Token token) const override {
    return vocabulary_.Has(token) && vocabulary_.types[token] == TokenType::kControl;
  }

  bool IsEndOfGeneration(Token token) const override {
    return std::binary_search(vocabulary_.end_tokens.begin(), vocabulary_.end_tokens.end(), token);
  }

  std::vector<Token> end_tokens() const override { return vocabulary_.end_tokens; }
  std::vector<Token> never_drawn() const override { return vocabulary_.never_drawn; }
  std::optional<Token> bos() const override { return Optional(vocabulary_.bos); }
  std::optional<Token> eos() const override { return Optional(vocabulary_.eos); }
  bool add_bos() const override { return vocabulary_.add_bos; }
  bool add_eos() const override { return vocabulary_.add_eos; }
  bool adds_space_prefix() const override { return vocabulary_.add_space_prefix; }

  std::string description() const override {
    return fmt::format("{}, {} tokens", codec_->name(), vocabulary_.size());
  }

 private:
  // Appends the tokens of a text, without begin and end.
  void EncodeText(std::string_view text, EncodeOptions options, EncodeScratch& scratch,
                  std::vector<Token>& tokens) const {
    const std::string composed = vocabulary_.compose ? Composed(text) : std::string();
    if (vocabulary_.compose) text = composed;
    bool prefixed = !options.continues && vocabulary_.add_space_prefix;
    for (const Fragment& fragment : special_tokens_.Split(text, options.parse_special)) {
      if (fragment.token != kNoToken) {
        tokens.push_back(fragment.token);
      } else {
        const std::string_view part = text.substr(fragment.begin, fragment.size);
        codec_->Encode(part, prefixed && TakesPrefix(part), scratch, tokens);
      }
      prefixed =
          fragment.token != kNoToken && vocabulary_.add_space_prefix && !vocabulary_.prefix_once;
    }
  }

  static constexpr std::size_t kMaxMerges = std::size_t{1} << 24;

  bool TakesPrefix(std::string_view text) const {
    return !vocabulary_.prefix_if_none || !(text.starts_with(' ') || text.starts_with(kSpaceMark));
  }

  // The encoder puts no space before a special token, so a space at the beginning of such a token
  // belongs to the text.
  bool MayFollowSpacePrefix(Token token) const {
    return vocabulary_.Has(token) && !vocabulary_.IsSpecial(token);
  }

  static std::optional<Token> Optional(Token token) {
    return token == kNoToken ? std::nullopt : std::optional<Token>(token);
  }

  const Vocabulary vocabulary_;
  const SpecialTokens special_tokens_;
  std::unique_ptr<Codec> codec_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::Load(const formats::Metadata& metadata) {
  FORETOKEN_TRY(Vocabulary vocabulary, ReadVocabulary(metadata));
  auto tokenizer = std::make_unique<GgufTokenizer>(std::move(vocabulary));
  FORETOKEN_CHECK_OK(tokenizer->MakeCodec(metadata));
  return tokenizer;
}

}  // namespace foretoken::text
