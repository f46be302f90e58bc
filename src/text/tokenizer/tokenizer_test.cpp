// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tokenizer.h"

#include <limits>

#include "base/failure_testing.h"
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

using Tokens = std::vector<Token>;

ErrorCode CodeOf(const formats::Metadata& metadata) {
  const auto tokenizer = Tokenizer::Load(metadata);
  EXPECT_FALSE(tokenizer.has_value());
  return tokenizer ? static_cast<ErrorCode>(-1) : tokenizer.error().code;
}

TEST(Tokenizer, RefusesMissingLists) {
  EXPECT_EQ(CodeOf({}), ErrorCode::kInvalidFile);
  formats::Metadata metadata;
  metadata.Set("tokenizer.ggml.model", std::string("llama"));
  EXPECT_EQ(CodeOf(metadata), ErrorCode::kInvalidFile);
  metadata.Set("tokenizer.ggml.tokens", std::vector<std::string>{});
  EXPECT_EQ(CodeOf(metadata), ErrorCode::kInvalidFile);
  metadata.Set("tokenizer.ggml.tokens", std::vector<std::int64_t>{1, 2});
  EXPECT_EQ(CodeOf(metadata), ErrorCode::kInvalidFile);
  metadata.Set("tokenizer.ggml.tokens", std::vector<std::string>{"a"});
  EXPECT_EQ(Load(metadata)->vocabulary_size(), 1);
  metadata.Set("tokenizer.ggml.model", std::string("gpt2"));
  EXPECT_EQ(CodeOf(metadata), ErrorCode::kInvalidFile);  // no merges
}

TEST(Tokenizer, PutsASpaceBeforeEachPartOrTheFirstAlone) {
  constexpr Token kPiece = kFirstSpm;
  formats::Metadata metadata =
      SpmMetadata({{"\u2581", -9}, {"a", -9}, {"b", -9}, {"\u2581a", -1}, {"ab", -2}});
  const std::vector<TextPart> parts = {{"ab a"}, {"<s>", true}, {"ab a"}};
  EXPECT_EQ(Load(metadata)->EncodeParts(parts),
            (Tokens{kPiece + 3, kPiece + 2, kPiece + 3, 1, kPiece + 3, kPiece + 2, kPiece + 3}));
  metadata.Set("foretoken.tokenizer.metaspace", std::string("first"));
  EXPECT_EQ(Load(metadata)->EncodeParts(parts),
            (Tokens{kPiece + 3, kPiece + 2, kPiece + 3, 1, kPiece + 4, kPiece + 3}));
}

TEST(Tokenizer, RefusesListsThatAreTooShort) {
  formats::Metadata metadata = SpmMetadata({{"a"}});
  metadata.Set("tokenizer.ggml.scores", std::vector<double>{1, 2});
  EXPECT_EQ(CodeOf(metadata), ErrorCode::kInvalidFile);
  metadata = SpmMetadata({{"a"}});
  metadata.Set("tokenizer.ggml.token_type", std::vector<std::int64_t>{1, 2});
  EXPECT_EQ(CodeOf(metadata), ErrorCode::kInvalidFile);
}

TEST(Tokenizer, RefusesUnknownModelsAndNamesTheKnownOnes) {
  formats::Metadata metadata = SpmMetadata({});
  metadata.Set("tokenizer.ggml.model", std::string("rwkv"));
  EXPECT_TRUE(Fails(Tokenizer::Load(metadata), ErrorCode::kUnsupported, "gpt2"));
}

TEST(Tokenizer, TakesIdsOutOfRangeForAbsent) {
  formats::Metadata metadata = GptMetadata("gpt-2", {});
  for (const std::int64_t id : {std::int64_t{-1}, std::int64_t{256}, std::int64_t{4294967295},
                                std::numeric_limits<std::int64_t>::min()}) {
    for (const char* key : {"bos", "eos", "eot", "eom", "unknown", "fim_pad"})
      metadata.Set(std::string("tokenizer.ggml.") + key + "_token_id", id);
    metadata.Set("tokenizer.ggml.add_bos_token", true);
    metadata.Set("tokenizer.ggml.add_eos_token", true);
    const auto t = Load(metadata);
    EXPECT_EQ(t->bos(), std::nullopt);
    EXPECT_FALSE(t->add_bos());
    EXPECT_EQ(t->end_tokens(), Tokens{});
    EXPECT_EQ(t->Encode("a"), (Tokens{'a'}));
  }
}

TEST(Tokenizer, AnswersForTokensOutOfRange) {
  const auto t = Load(GptMetadata("gpt-2", {}));
  for (const Token token :
       {-1, 256, std::numeric_limits<Token>::max(), std::numeric_limits<Token>::min()}) {
    EXPECT_EQ(t->Piece(token, true), "");
    EXPECT_EQ(t->TokenText(token), "");
    EXPECT_FALSE(t->IsControl(token));
    EXPECT_FALSE(t->IsEndOfGeneration(token));
  }
  EXPECT_EQ(t->Decode(Tokens{'a', -5, 'b', 1 << 30}), "ab");
}

TEST(Tokenizer, OfDuplicateTokensTheFirstIsUsedAndAllAreRead) {
  const auto spm = Load(SpmMetadata({{"▁", -1}, {"a", -1}, {"a", 5}}));
  EXPECT_EQ(Encode(*spm, "a"), (Tokens{kFirstSpm, kFirstSpm + 1}));
  EXPECT_EQ(spm->Piece(kFirstSpm + 2), "a");
  const auto gpt = Load(GptMetadata("gpt-2", {}, {{"a"}, {"<u>", 0, 4}, {"<u>", 0, 4}}));
  EXPECT_EQ(Encode(*gpt, "a<u>"), (Tokens{'a', kFirstMerge + 1}));
}

TEST(Tokenizer, EmptyTokensAreNeverFound) {
  const auto spm = Load(SpmMetadata({{""}, {"", 0, 4}, {"", 0, 3}, {"a"}}));
  EXPECT_EQ(spm->Decode(Encode(*spm, "aa", true)), "aa");
  const auto gpt = Load(GptMetadata("gpt-2", {}, {{""}, {"", 0, 4}}));
  EXPECT_EQ(Encode(*gpt, "aa", true), (Tokens{'a', 'a'}));
}

TEST(Tokenizer, ByteTokensOfAnotherFormAreText) {
  const auto t = Load(SpmMetadata({{"▁"}, {"<0xZZ>", 0, 6}, {"x", 0, 6}, {"y", 0, 99}}));
  EXPECT_EQ(t->Piece(kFirstSpm + 1), "<0xZZ>");
  EXPECT_EQ(Encode(*t, "xy"), (Tokens{kFirstSpm, kFirstSpm + 2, kFirstSpm + 3}));
}

TEST(Tokenizer, FindsByteTokensWithoutTokenTypes) {
  formats::Metadata metadata;
  metadata.Set("tokenizer.ggml.model", std::string("llama"));
  metadata.Set("tokenizer.ggml.tokens",
               std::vector<std::string>{"<unk>", "<s>", "</s>", "▁", "<0x41>"});
  const auto t = Load(metadata);
  EXPECT_EQ(t->Encode("A"), (Tokens{1, 3, 4}));
  EXPECT_EQ(t->Decode(Tokens{3, 4}), "A");
}

TEST(Tokenizer, DescribesItself) {
  EXPECT_EQ(Load(SpmMetadata({}))->description(), "SentencePiece BPE, 259 tokens");
  EXPECT_EQ(Load(GptMetadata("qwen2", {}))->description(), "byte-level BPE (qwen2), 256 tokens");
  EXPECT_NE(Load(GptMetadata("what", {}))->description().find("\"what\" is unknown"),
            std::string::npos);
}

}  // namespace
}  // namespace foretoken::text
