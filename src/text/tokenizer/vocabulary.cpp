// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/special_tokens.h"
#include "text/tokenizer/unicode.h"

namespace foretoken::text {
namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 24;

[[nodiscard]] Result<Family> ReadFamily(const formats::Metadata& metadata) {
  const std::string* model = metadata.String("tokenizer.ggml.model");
  if (model == nullptr) {
    return Fail(ErrorCode::kInvalidFile,
                "tokenizer: tokenizer.ggml.model is missing; convert the model with its tokenizer");
  }
  if (*model == "llama") return Family::kSentencePiece;
  if (*model == "gpt2") return Family::kByteLevel;
  return Fail(ErrorCode::kUnsupported,
              fmt::format("tokenizer: model \"{}\" is unknown; use a file with \"llama\" "
                          "(SentencePiece BPE) or \"gpt2\" (byte-level BPE)",
                          Shown(*model)));
}

[[nodiscard]] Status CheckLength(std::string_view list, std::size_t length, std::size_t n_tokens) {
  if (length >= n_tokens) return {};
  return Fail(ErrorCode::kInvalidFile,
              fmt::format("tokenizer: {} has {} entries for {} tokens; the file is damaged", list,
                          length, n_tokens));
}

[[nodiscard]] Status ReadTexts(const formats::Metadata& metadata, Vocabulary& vocabulary) {
  const auto* texts = metadata.Strings("tokenizer.ggml.tokens");
  if (texts == nullptr || texts->empty()) {
    return Fail(ErrorCode::kInvalidFile,
                "tokenizer: tokenizer.ggml.tokens is missing or empty; the file has no vocabulary");
  }
  if (texts->size() > kMaxTokens) {
    return Fail(
        ErrorCode::kInvalidFile,
        fmt::format("tokenizer: {} tokens are more than the limit of {}; the file is damaged",
                    texts->size(), kMaxTokens));
  }
  vocabulary.texts = *texts;
  return {};
}

[[nodiscard]] Status ReadScores(const formats::Metadata& metadata, Vocabulary& vocabulary) {
  const std::size_t n_tokens = vocabulary.texts.size();
  vocabulary.scores.assign(n_tokens, 0.0F);
  const auto* scores = metadata.Floats("tokenizer.ggml.scores");
  if (scores == nullptr) return {};
  FORETOKEN_CHECK_OK(CheckLength("tokenizer.ggml.scores", scores->size(), n_tokens));
  for (std::size_t i = 0; i < n_tokens; ++i) {
    const auto score = static_cast<float>((*scores)[i]);
    vocabulary.scores[i] = std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
  }
  return {};
}

[[nodiscard]] Status ReadTypes(const formats::Metadata& metadata, Vocabulary& vocabulary) {
  const std::size_t n_tokens = vocabulary.texts.size();
  const auto* types = metadata.Ints("tokenizer.ggml.token_type");
  if (types != nullptr) {
    FORETOKEN_CHECK_OK(CheckLength("tokenizer.ggml.token_type", types->size(), n_tokens));
  }
  vocabulary.types.assign(n_tokens, TokenType::kNormal);
  for (std::size_t i = 0; i < n_tokens; ++i) {
    const bool byte_text = ByteOfTokenText(vocabulary.texts[i]) >= 0;
    TokenType& type = vocabulary.types[i];
    if (types != nullptr) {
      const std::int64_t value = (*types)[i];
      type = value >= 1 && value <= 6 ? static_cast<TokenType>(value) : TokenType::kUndefined;
      if (type == TokenType::kByte && !byte_text) type = TokenType::kNormal;
    } else if (byte_text && vocabulary.family == Family::kSentencePiece) {
      type = TokenType::kByte;
    }
  }
  return {};
}

// An id outside the vocabulary counts as absent: converters write 4294967295 for "none".
Token ReadId(const formats::Metadata& metadata, std::string_view key, const Vocabulary& vocabulary,
             Token fallback) {
  const auto id = metadata.Int(key);
  if (id && vocabulary.Has(*id)) return static_cast<Token>(*id);
  return vocabulary.Has(fallback) ? fallback : kNoToken;
}

}  // namespace

bool Vocabulary::IsSpecial(Token token) const {
  const std::string& text = texts[token];
  switch (types[token]) {
    case TokenType::kControl:
    case TokenType::kUnknown:
      return !text.empty();
    case TokenType::kUserDefined:
      return !text.empty() &&
             (family == Family::kByteLevel || text.find(kSpaceMark) == std::string::npos);
    default:
      return false;
  }
}

int ByteOfTokenText(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    if (c >= '0' && c <= '9') {
      value = value * 16 + (c - '0');
    } else if (c >= 'A' && c <= 'F') {
      value = value * 16 + (c - 'A' + 10);
    } else if (c >= 'a' && c <= 'f') {
      value = value * 16 + (c - 'a' + 10);
    } else {
      return -1;
    }
  }
  return value;
}

Result<Vocabulary> ReadVocabulary(const formats::Metadata& metadata) {
  Vocabulary vocabulary;
  FORETOKEN_TRY(vocabulary.family, ReadFamily(metadata));
  FORETOKEN_CHECK_OK(ReadTexts(metadata, vocabulary));
  FORETOKEN_CHECK_OK(ReadScores(metadata, vocabulary));
  FORETOKEN_CHECK_OK(ReadTypes(metadata, vocabulary));

  const bool spm = vocabulary.family == Family::kSentencePiece;
  vocabulary.bos = ReadId(metadata, "tokenizer.ggml.bos_token_id", vocabulary, spm ? 1 : kNoToken);
  vocabulary.eos = ReadId(metadata, "tokenizer.ggml.eos_token_id", vocabulary, spm ? 2 : kNoToken);
  vocabulary.unknown =
      ReadId(metadata, "tokenizer.ggml.unknown_token_id", vocabulary, spm ? 0 : kNoToken);

  const std::string* pre = metadata.String("tokenizer.ggml.pre");
  const bool adds_bos_by_family =
      spm || FindPattern(pre == nullptr ? std::string_view() : *pre).add_bos;
  vocabulary.add_bos = metadata.Bool("tokenizer.ggml.add_bos_token").value_or(adds_bos_by_family) &&
                       vocabulary.bos != kNoToken;
  vocabulary.add_eos =
      metadata.Bool("tokenizer.ggml.add_eos_token").value_or(false) && vocabulary.eos != kNoToken;
  vocabulary.add_space_prefix =
      spm && metadata.Bool("tokenizer.ggml.add_space_prefix").value_or(true);
  FindEndTokens(metadata, vocabulary);
  return vocabulary;
}

}  // namespace foretoken::text
