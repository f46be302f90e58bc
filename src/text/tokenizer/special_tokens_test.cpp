// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/special_tokens.h"

#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

using Tokens = std::vector<Token>;
constexpr Token kFirstFree = kFirstMerge;

TEST(SpecialTokens, ControlTokensAreParsedOnlyOnRequest) {
  const auto t = Load(GptMetadata("gpt-2", {}, {{"<c>", 0, 3}}));
  EXPECT_EQ(Encode(*t, "a<c>"), (Tokens{'a', '<', 'c', '>'}));
  EXPECT_EQ(Encode(*t, "a<c>", true), (Tokens{'a', kFirstFree}));
}

TEST(SpecialTokens, UserDefinedTokensAreAlwaysParsed) {
  const auto t = Load(GptMetadata("gpt-2", {}, {{"<u>", 0, 4}}));
  EXPECT_EQ(Encode(*t, "<u>a<u><u>"), (Tokens{kFirstFree, 'a', kFirstFree, kFirstFree}));
}

TEST(SpecialTokens, TheLongestGoesFirstWhereverItStands) {
  const auto t = Load(GptMetadata("gpt-2", {}, {{"ab", 0, 4}, {"bcd", 0, 4}, {"a", 0, 4}}));
  EXPECT_EQ(Encode(*t, "abcd"), (Tokens{kFirstFree + 2, kFirstFree + 1}));
  EXPECT_EQ(Encode(*t, "abc"), (Tokens{kFirstFree, 'c'}));
}

TEST(SpecialTokens, TheLowerIdGoesFirstAmongEquallyLongOnes) {
  const auto t = Load(GptMetadata("gpt-2", {}, {{"ba", 0, 4}, {"ab", 0, 4}}));
  EXPECT_EQ(Encode(*t, "aba"), (Tokens{'a', kFirstFree}));
}

TEST(SpecialTokens, OverlappingOccurrencesAreTakenFromTheLeft) {
  const auto t = Load(GptMetadata("gpt-2", {}, {{"xx", 0, 4}}));
  EXPECT_EQ(Encode(*t, "xxxxx"), (Tokens{kFirstFree, kFirstFree, 'x'}));
}

TEST(SpecialTokens, AControlTokenDoesNotHideAUserDefinedOneInPlainText) {
  const auto t = Load(GptMetadata("gpt-2", {}, {{"<u>!", 0, 3}, {"<u>", 0, 4}}));
  EXPECT_EQ(Encode(*t, "<u>!"), (Tokens{kFirstFree + 1, '!'}));
  EXPECT_EQ(Encode(*t, "<u>!", true), (Tokens{kFirstFree}));
}

TEST(SpecialTokens, ThatAreSuppressedAreThoseOfTheMetadataThatExist) {
  formats::Metadata metadata = GptMetadata("gpt-2", {}, {{"<a>", 0, 3}, {"<b>", 0, 3}});
  EXPECT_TRUE(Load(metadata)->never_drawn().empty());
  metadata.Set("tokenizer.ggml.suppress_tokens",
               std::vector<std::int64_t>{kFirstFree + 1, -1, std::int64_t{1} << 40, kFirstFree});
  EXPECT_EQ(Load(metadata)->never_drawn(), (Tokens{kFirstFree + 1, kFirstFree}));
}

TEST(EndOfGeneration, HoldsTheTokensOfTheMetadata) {
  formats::Metadata metadata = GptMetadata("gpt-2", {}, {{"e", 0, 3}, {"t", 0, 3}, {"m", 0, 3}});
  metadata.Set("tokenizer.ggml.eos_token_id", std::int64_t{kFirstFree});
  metadata.Set("tokenizer.ggml.eot_token_id", std::int64_t{kFirstFree + 1});
  metadata.Set("tokenizer.ggml.eom_token_id", std::int64_t{kFirstFree + 2});
  EXPECT_EQ(Load(metadata)->end_tokens(), (Tokens{kFirstFree, kFirstFree + 1, kFirstFree + 2}));
  EXPECT_EQ(Load(metadata)->eos(), kFirstFree);
  EXPECT_TRUE(Load(metadata)->IsEndOfGeneration(kFirstFree + 2));
  EXPECT_FALSE(Load(metadata)->IsEndOfGeneration('a'));
}

TEST(EndOfGeneration, HoldsTokensKnownByTheirTextsAndMakesThemControl) {
  const auto t = Load(GptMetadata(
      "gpt-2", {},
      {{"<|im_end|>"}, {"<|fim_pad|>", 0, 4}, {"<|fim_prefix|>"}, {"<|endoftext|>", 0, 3}}));
  EXPECT_EQ(t->end_tokens(), (Tokens{kFirstFree, kFirstFree + 1, kFirstFree + 3}));
  for (const Token token : {kFirstFree, kFirstFree + 1, kFirstFree + 2, kFirstFree + 3})
    EXPECT_TRUE(t->IsControl(token));
  EXPECT_EQ(t->Piece(kFirstFree), "");
}

TEST(EndOfGeneration, LeavesOutTheEndOfAPartWhereMessagesEndOtherwise) {
  const auto t =
      Load(GptMetadata("gpt-2", {}, {{"<|end|>", 0, 3}, {"<|return|>", 0, 3}, {"<|call|>", 0, 3}}));
  EXPECT_EQ(t->end_tokens(), (Tokens{kFirstFree + 1, kFirstFree + 2}));
}

TEST(SpecialTokens, SomeModelsStripTheWhiteSpaceBehindThem) {
  formats::Metadata metadata =
      SpmMetadata({{"a", -1}, {"<|user|>", 0, 3}, {"<|endoftext|>", 0, 3}, {"▁", -2}, {"▁a", -3}});
  metadata.Set("tokenizer.ggml.add_space_prefix", false);
  const std::string text = "<|user|> \n a<|endoftext|> a";
  const std::size_t kept = Encode(*Load(metadata), text, true).size();
  metadata.Set("general.name", std::string("Phi-3 mini"));
  EXPECT_EQ(Encode(*Load(metadata), text, true),
            (Tokens{kFirstSpm + 1, kFirstSpm, kFirstSpm + 2, kFirstSpm + 4}));
  EXPECT_EQ(kept, 6u);
}

TEST(SpecialTokens, SomeModelsStripTheWhiteSpaceBeforeTheMask) {
  const auto t = Load(GptMetadata("jina-v2-code", {}, {{"<mask>", 0, 3}}));
  EXPECT_EQ(Encode(*t, "a \t<mask> b", true), (Tokens{'a', kFirstMerge, ' ', 'b'}));
  EXPECT_EQ(Encode(*t, "  <mask>", true), (Tokens{kFirstMerge}));
}

TEST(SpecialTokens, MarksOfMessagesAreAlwaysFound) {
  const auto t = Load(GptMetadata("gpt-4o", {}, {{"<|channel|>", 0, 3}, {"<|x|>", 0, 3}}));
  EXPECT_EQ(Encode(*t, "<|channel|>a"), (Tokens{kFirstMerge, 'a'}));
}

TEST(SpecialTokens, ExactFilesKeepTheTypesThatTheyState) {
  formats::Metadata metadata = GptMetadata("qwen2", {}, {{"</s>"}});
  EXPECT_EQ(Encode(*Load(metadata), "</s>", true), (Tokens{kFirstMerge}));  // known by its text
  metadata.Set("foretoken.tokenizer.exact", true);
  EXPECT_EQ(Encode(*Load(metadata), "</s>", true), (Tokens{'<', '/', 's', '>'}));
  EXPECT_TRUE(Load(metadata)->end_tokens().empty());
}

TEST(SpecialTokens, EqualTextsCountOnce) {
  std::vector<TestToken> tokens(1000, {"<x>", 0, 3});
  tokens.push_back({"<x>", 0, 4});
  const auto t = Load(GptMetadata("gpt-2", {}, tokens));
  EXPECT_EQ(Encode(*t, "<x><x>", true), (Tokens{kFirstMerge, kFirstMerge}));
  EXPECT_EQ(Encode(*t, "<x>"), (Tokens{kFirstMerge + 1000}));
}

}  // namespace
}  // namespace foretoken::text
