// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

using Tokens = std::vector<Token>;
constexpr Token kFirstCharacter = kFirstSpm;

// <unk> <s> </s> and the byte tokens, then the given ones from F on.
formats::Metadata CharacterVocabulary(const std::vector<std::string>& tokens,
                                      const std::vector<std::string>& merges,
                                      const std::string& pre = "sarvam-moe") {
  std::vector<TestToken> all;
  for (const std::string& text : tokens) all.push_back({text});
  formats::Metadata metadata = SpmMetadata(all);
  metadata.Set("tokenizer.ggml.model", std::string("gpt2"));
  metadata.Set("tokenizer.ggml.pre", pre);
  metadata.Set("tokenizer.ggml.merges", merges);
  return metadata;
}

TEST(CharacterBpe, MergesCharactersAcrossSpacesByRank) {
  const auto t = Load(CharacterVocabulary({"a", "b", "▁", "▁b", "a▁", "é"}, {"▁ b", "a ▁"}));
  EXPECT_EQ(Encode(*t, "a b"), (Tokens{kFirstCharacter, kFirstCharacter + 3}));
  EXPECT_EQ(Encode(*t, "a é"), (Tokens{kFirstCharacter + 4, kFirstCharacter + 5}));
}

TEST(CharacterBpe, MergesWithinLinesOnly) {
  const auto t = Load(CharacterVocabulary({"a", "\n", "a\n"}, {"a \n"}));
  EXPECT_EQ(Encode(*t, "a\n"), (Tokens{kFirstCharacter, kFirstCharacter + 1}));
}

TEST(CharacterBpe, SpellsWhatIsNoTokenWithBytes) {
  const auto t = Load(CharacterVocabulary({"a"}, {"x y", "a ▁"}));
  EXPECT_EQ(Encode(*t, "aé\xFF"),
            (Tokens{kFirstCharacter, SpmByte(0xC3), SpmByte(0xA9), SpmByte(0xFF)}));
  EXPECT_EQ(Encode(*t, "xy a "),
            (Tokens{SpmByte('x'), SpmByte('y'), SpmByte(' '), SpmByte('a'), SpmByte(' ')}));
}

TEST(CharacterBpe, Gemma4TakesRunsOfNewlinesWholeAndAlwaysAddsBos) {
  formats::Metadata metadata = CharacterVocabulary({"\n", "\n\n"}, {}, "gemma4");
  EXPECT_EQ(Load(metadata)->Encode("\n\n"),
            (Tokens{kFirstCharacter + 1}));  // no id of BOS is given
  metadata.Set("tokenizer.ggml.bos_token_id", std::int64_t{1});
  EXPECT_EQ(Load(metadata)->Encode("\n\n\n"),
            (Tokens{1, kFirstCharacter, kFirstCharacter, kFirstCharacter}));
  EXPECT_EQ(Load(metadata)->Encode("\n\n"), (Tokens{1, kFirstCharacter + 1}));
  metadata.Set("tokenizer.ggml.model", std::string("gemma4"));
  metadata.Set("tokenizer.ggml.pre", std::string("qwen2"));  // the model decides
  EXPECT_EQ(Load(metadata)->Encode("\n\n"), (Tokens{1, kFirstCharacter + 1}));
  EXPECT_EQ(Load(metadata)->description(), "character BPE (gemma4), 261 tokens");
}

TEST(CharacterBpe, MmBertBeginsLinesWithASpace) {
  const auto t = Load(CharacterVocabulary({"a", "▁", "▁a", "\n"}, {"▁ a"}, "mmbert"));
  EXPECT_EQ(Encode(*t, "a\n a"),
            (Tokens{kFirstCharacter + 2, kFirstCharacter + 3, kFirstCharacter + 2}));
}

TEST(CharacterBpe, GivesAnyBytesBack) {
  std::mt19937 random(4);
  for (const char* pre : {"gemma4", "sarvam-moe", "whitespace"}) {
    const auto t = Load(CharacterVocabulary({"a", "b", "▁", "▁b", "th", "the", "\n", "世", "é"},
                                            {"▁ b", "t h", "th e", "▁ ▁"}, pre));
    for (int i = 0; i < 200; ++i) {
      const std::string bytes = RandomBytes(random, random() % 60);
      EXPECT_EQ(t->Decode(Encode(*t, bytes)), bytes) << pre;
    }
  }
}

TEST(CharacterBpe, NeedsMerges) {
  formats::Metadata metadata = MakeMetadata("gemma4", {{"a"}});
  const auto loaded = Tokenizer::Load(metadata);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kInvalidFile);
}

}  // namespace
}  // namespace foretoken::text
