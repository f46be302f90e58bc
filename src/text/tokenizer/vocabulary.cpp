// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/vocabulary.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "text/tokenizer/special_tokens.h"
#include "text/tokenizer/unicode.h"
#include "text/tokenizer/vocabulary_keys.h"

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
  if (*model == "gemma4") return Family::kCharacters;
  if (*model == "t5") return Family::kUnigram;
  if (*model == "bert") return Family::kWordPiece;
  return Fail(ErrorCode::kUnsupported,
              fmt::format("tokenizer: model \"{}\" is unknown; use a file with \"llama\" "
                          "(SentencePiece BPE), \"gpt2\" (byte-level BPE), \"gemma4\" (character "
                          "BPE), \"t5\" (Unigram) or \"bert\" (WordPiece)",
                          Shown(*model)));
}

// The ids that count where the file names none; one past the vocabulary's end counts as absent.
struct DefaultIds {
  Token bos = kNoToken;
  Token eos = kNoToken;
  Token unknown = kNoToken;
  Token separator = kNoToken;
};

DefaultIds DefaultsOf(Family family) {
  switch (family) {
    case Family::kSentencePiece:
      return {.bos = 1, .eos = 2, .unknown = 0};
    case Family::kUnigram:
      return {.eos = 1, .unknown = 2};
    case Family::kWordPiece:
      return {.bos = 101, .unknown = 100, .separator = 102};
    default:
      return {};
  }
}

// Which pattern cuts the text into words. Some patterns make the family one of characters.
void ReadPattern(const formats::Metadata& metadata, Vocabulary& vocabulary) {
  const std::string* pre = metadata.String("tokenizer.ggml.pre");
  if (vocabulary.family == Family::kCharacters) {
    vocabulary.pattern_name = "gemma4";
  } else if (pre != nullptr && !pre->empty()) {
    vocabulary.pattern_name = *pre;
  }
  vocabulary.pattern = FindPattern(vocabulary.pattern_name);
  if (vocabulary.pattern.symbols != Symbols::kBytes) vocabulary.family = Family::kCharacters;
  vocabulary.exact = metadata.Bool("foretoken.tokenizer.exact").value_or(false);
}

// What is put around a text and how it is normalised.
void ReadRules(const formats::Metadata& metadata, Vocabulary& vocabulary) {
  const auto stated = [&](std::string_view key, bool fallback) {
    return metadata.Bool(std::string("tokenizer.ggml.").append(key)).value_or(fallback);
  };
  const Family family = vocabulary.family;
  const bool ranked = family == Family::kByteLevel || family == Family::kCharacters;
  const bool word_piece = family == Family::kWordPiece;
  const bool bos_by_family = ranked ? vocabulary.pattern.add_bos : family == Family::kSentencePiece;
  const bool always_bos = word_piece || (ranked && vocabulary.pattern.always_bos);
  vocabulary.add_bos =
      (always_bos || stated("add_bos_token", bos_by_family)) && vocabulary.bos != kNoToken;
  vocabulary.add_eos = !word_piece && stated("add_eos_token", family == Family::kUnigram) &&
                       vocabulary.eos != kNoToken;
  vocabulary.add_separator = word_piece && vocabulary.separator != kNoToken;
  vocabulary.add_space_prefix =
      (family == Family::kSentencePiece && stated("add_space_prefix", true)) ||
      (family == Family::kUnigram && stated("add_space_prefix", false));
  const std::string* metaspace = metadata.String("foretoken.tokenizer.metaspace");
  vocabulary.prefix_once = metaspace != nullptr && *metaspace == "first";
  vocabulary.prefix_if_none = metaspace != nullptr;
  vocabulary.remove_extra_whitespaces = stated("remove_extra_whitespaces", false);
  vocabulary.lowercase = stated("normalizer.lowercase", true);
  vocabulary.strip_accents = stated("normalizer.strip_accents", vocabulary.lowercase);
  vocabulary.compose = stated("normalizer.nfc", false);
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
    } else if (byte_text && (vocabulary.family == Family::kSentencePiece ||
                             vocabulary.family == Family::kCharacters)) {
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
      return !text.empty() && (family == Family::kByteLevel || family == Family::kWordPiece ||
                               text.find(kSpaceMark) == std::string::npos);
    default:
      return false;
  }
}

std::string Vocabulary::DescribePattern() const {
  if (!pattern.known) return fmt::format("default pattern, \"{}\" is unknown", pattern_name);
  return pattern_name.empty() ? "default" : pattern_name;
}

int ByteOfTokenText(std::string_view text) {
  const bool shaped =
      text.size() == 6 && text[0] == '<' && text[1] == '0' && text[2] == 'x' && text[5] == '>';
  if (!shaped) return -1;
  int value = 0;
  for (const char c : {text[3], text[4]}) {
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
  FORETOKEN_CHECK_OK(CheckKinds(metadata));
  Vocabulary vocabulary;
  FORETOKEN_TRY(vocabulary.family, ReadFamily(metadata));
  ReadPattern(metadata, vocabulary);
  FORETOKEN_CHECK_OK(ReadTexts(metadata, vocabulary));
  FORETOKEN_CHECK_OK(ReadScores(metadata, vocabulary));
  FORETOKEN_CHECK_OK(ReadTypes(metadata, vocabulary));

  const DefaultIds ids = DefaultsOf(vocabulary.family);
  const auto read = [&](std::string_view name, Token fallback) {
    return ReadId(metadata, fmt::format("tokenizer.ggml.{}_token_id", name), vocabulary, fallback);
  };
  vocabulary.bos = read("bos", ids.bos);
  vocabulary.eos = read("eos", ids.eos);
  vocabulary.unknown = read("unknown", ids.unknown);
  vocabulary.separator = read("seperator", ids.separator);  // the key is spelled like this
  ReadRules(metadata, vocabulary);
  FindEndTokens(metadata, vocabulary);
  FindSuppressedTokens(metadata, vocabulary);
  FindStrippingTokens(metadata, vocabulary);
  return vocabulary;
}

}  // namespace foretoken::text
