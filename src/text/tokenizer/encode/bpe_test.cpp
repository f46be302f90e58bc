// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/split/patterns.h"
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

using Tokens = std::vector<Token>;
constexpr Token kMerge = kFirstMerge;

TEST(ByteLevelBpe, MergesTheLowestRankFirst) {
  const auto t = Load(GptMetadata("gpt-2", {"b c", "a b", "a bc"}));
  EXPECT_EQ(Encode(*t, "abc"), (Tokens{kMerge + 2}));
  EXPECT_EQ(Encode(*t, "abd"), (Tokens{kMerge + 1, 'd'}));
}

TEST(ByteLevelBpe, MergesTheLeftmostOfEqualRanks) {
  const auto t = Load(GptMetadata("gpt-2", {"a a"}));
  EXPECT_EQ(Encode(*t, "aaa"), (Tokens{kMerge, 'a'}));
}

TEST(ByteLevelBpe, MergesOnlyPairsThatAreListed) {
  const auto t = Load(GptMetadata("gpt-2", {"a b", "b c"}, {{"abc"}}));
  EXPECT_EQ(Encode(*t, "abc"), (Tokens{kMerge, 'c'}));  // abc is a token, but no merge makes it
}

TEST(ByteLevelBpe, TakesWholeWordsWhereThePatternIgnoresMerges) {
  const auto whole = Load(GptMetadata("llama-bpe", {"a b"}, {{"abc"}, {"Ġabc"}}));
  EXPECT_EQ(Encode(*whole, "abc abc abcd"),
            (Tokens{kMerge + 1, kMerge + 2, ' ', kMerge, 'c', 'd'}));
  const auto merged = Load(GptMetadata("qwen2", {"a b"}, {{"abc"}}));
  EXPECT_EQ(Encode(*merged, "abc"), (Tokens{kMerge, 'c'}));
}

TEST(ByteLevelBpe, NeverMergesAcrossWords) {
  const auto t = Load(GptMetadata("gpt-2", {"a Ġ", "Ġ b"}));
  EXPECT_EQ(Encode(*t, "a b"), (Tokens{'a', kMerge + 1}));
}

TEST(ByteLevelBpe, MergesPassThroughPiecesThatAreNoTokens) {
  formats::Metadata metadata = GptMetadata("gpt-2", {}, {{"abc"}});
  metadata.Set("tokenizer.ggml.merges", std::vector<std::string>{"a b", "ab c"});
  EXPECT_EQ(Encode(*Load(metadata), "abc"), (Tokens{kMerge}));
  EXPECT_EQ(Encode(*Load(metadata), "ab"), (Tokens{'a', 'b'}));
}

TEST(ByteLevelBpe, MalformedMergesCountForNothing) {
  formats::Metadata metadata = GptMetadata("gpt-2", {}, {{"ab"}});
  metadata.Set("tokenizer.ggml.merges", std::vector<std::string>{"", " ", "ab", "a ", " b", "x y z",
                                                                 "nowhere toFind", "a b", "a b"});
  EXPECT_EQ(Encode(*Load(metadata), "ab"), (Tokens{kMerge}));
  EXPECT_EQ(Encode(*Load(metadata), "xyz"), (Tokens{'x', 'y', 'z'}));
}

TEST(ByteLevelBpe, AddsBosByTheFamilyUnlessTheFileSays) {
  formats::Metadata metadata = GptMetadata("llama-bpe", {}, {{"<|begin_of_text|>", 0, 3}});
  EXPECT_FALSE(Load(metadata)->add_bos());  // the vocabulary has none
  metadata.Set("tokenizer.ggml.bos_token_id", std::int64_t{kMerge});
  EXPECT_EQ(Load(metadata)->Encode("a"), (Tokens{kMerge, 'a'}));
  EXPECT_EQ(Load(metadata)->Encode("a", {.add_special = false}), (Tokens{'a'}));
  metadata.Set("tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ(Load(metadata)->Encode("a"), (Tokens{'a'}));
  metadata.Set("tokenizer.ggml.pre", std::string("qwen2"));
  EXPECT_FALSE(Load(metadata)->add_bos());
}

TEST(ByteLevelBpe, PiecesAreTheBytesBehindTheAlphabet) {
  const auto t = Load(GptMetadata("gpt-2", {"Ġ a"}, {{"Ċ世", 0, 1}, {" ud", 0, 4}, {"<c>", 0, 3}}));
  EXPECT_EQ(t->Piece(kMerge), " a");
  EXPECT_EQ(t->Piece(kMerge + 1), "\n世");  // what is not in the alphabet stands for itself
  EXPECT_EQ(t->Piece(kMerge + 2), " ud");
  EXPECT_EQ(t->Piece(kMerge + 3), "");
  EXPECT_EQ(t->Piece(kMerge + 3, true), "<c>");
  EXPECT_EQ(t->Piece(0xFF), "\xFF");
}

TEST(ByteLevelBpe, KeepsInvalidBytesAsTheirOwnTokens) {
  const auto t = Load(GptMetadata("llama-bpe", {}));
  EXPECT_EQ(Encode(*t, "\xFF\xE4\xBD"), (Tokens{0xFF, 0xE4, 0xBD}));
}

TEST(ByteLevelBpe, SpellsMissingBytesWithTheUnknownTokenIfThereIsOne) {
  formats::Metadata metadata = MakeMetadata("gpt2", {{"a"}, {"<unk>", 0, 2}});
  metadata.Set("tokenizer.ggml.merges", std::vector<std::string>{});
  EXPECT_EQ(Encode(*Load(metadata), "aba"), (Tokens{0, 0}));
  metadata.Set("tokenizer.ggml.unknown_token_id", std::int64_t{1});
  EXPECT_EQ(Encode(*Load(metadata), "aba"), (Tokens{0, 1, 0}));
}

TEST(ByteLevelBpe, GivesAnyBytesBackWithEveryPattern) {
  std::mt19937 random(2);
  for (const Pattern& pattern : AllPatterns()) {
    if (pattern.symbols != Symbols::kBytes) continue;
    const std::string pre(pattern.name);
    const auto t = Load(GptMetadata(pre, {"t h", "th e", "Ġ Ġ", "Ã ©", "â ĸ", "ð Ł", "1 2"},
                                    {{"<s>", 0, 3}, {"the", 0, 4}}));
    for (int i = 0; i < 60; ++i) {
      const std::string bytes = RandomBytes(random, random() % 60);
      EXPECT_EQ(t->Decode(Encode(*t, bytes)), bytes) << pre;
    }
  }
}

TEST(ByteLevelBpe, ComposesCharactersIfTheFileSays) {
  formats::Metadata metadata = GptMetadata("qwen2", {"Ã ©"});
  EXPECT_EQ(Encode(*Load(metadata), "e\u0301"), (Tokens{'e', 0xCC, 0x81}));
  metadata.Set("tokenizer.ggml.normalizer.nfc", true);
  const auto t = Load(metadata);
  EXPECT_EQ(Encode(*t, "e\u0301"), (Tokens{kMerge}));
  EXPECT_EQ(t->Decode(Encode(*t, "o\u0323\u0302 o\u0302\u0323 \u1112\u1161\u11AB")),
            "\u1ED9 \u1ED9 \uD55C");
  EXPECT_EQ(t->Decode(Encode(*t, "e\xCC\u0301\xFF")), "e\xCC\u0301\xFF");
}

TEST(ByteLevelBpe, EncodesOneLongWordInReasonableTime) {
  const auto t = Load(GptMetadata("gpt-2", {"a a", "aa aa", "aaaa aaaa"}));
  EXPECT_EQ(Encode(*t, std::string(1 << 18, 'a')).size(), std::size_t{1} << 15);
}

}  // namespace
}  // namespace foretoken::text
