// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

using Tokens = std::vector<Token>;
constexpr Token kFirstPiece = kFirstSpm;

TEST(SentencePiece, MergesTheHighestScoreFirst) {
  const auto t =
      Load(SpmMetadata({{"▁", -9}, {"a", -9}, {"b", -9}, {"c", -9}, {"ab", -2}, {"bc", -1}}));
  EXPECT_EQ(Encode(*t, "abc"), (Tokens{kFirstPiece, kFirstPiece + 1,
                                       kFirstPiece + 5}));  // ▁ a bc, though ab is further left
}

TEST(SentencePiece, MergesTheLeftmostOfEqualScores) {
  const auto t = Load(SpmMetadata({{"▁", -1}, {"a", -1}, {"aa", -1}, {"aaa", -1}}));
  EXPECT_EQ(Encode(*t, "aaaaa"),
            (Tokens{kFirstPiece, kFirstPiece + 3, kFirstPiece + 2}));  // (aa)aaa, (aaa)aa, aaa(aa)
}

TEST(SentencePiece, MergesUpToTokensThatHoldSpaces) {
  const auto t = Load(SpmMetadata({{"▁", -9}, {"a", -9}, {"a▁", -1}, {"a▁a", -2}, {"▁a", -3}}));
  EXPECT_EQ(Encode(*t, "a a"), (Tokens{kFirstPiece, kFirstPiece + 3}));
}

TEST(SentencePiece, PutsASpaceInFrontUnlessTheFileSaysNo) {
  formats::Metadata metadata = SpmMetadata({{"▁a", -1}, {"▁", -2}, {"a", -2}});
  EXPECT_TRUE(Load(metadata)->adds_space_prefix());
  EXPECT_EQ(Encode(*Load(metadata), "a"), (Tokens{kFirstPiece}));
  EXPECT_EQ(Encode(*Load(metadata), ""), (Tokens{}));
  metadata.Set("tokenizer.ggml.add_space_prefix", false);
  EXPECT_EQ(Encode(*Load(metadata), "a"), (Tokens{kFirstPiece + 2}));
}

TEST(SentencePiece, PutsNoSpaceInFrontOfATextThatContinues) {
  const auto t = Load(SpmMetadata({{"▁a", -1}, {"▁", -2}, {"a", -2}}));
  const EncodeOptions continues{.add_special = false, .continues = true};
  EXPECT_EQ(t->Encode("a", continues), (Tokens{kFirstPiece + 2}));
  EXPECT_EQ(t->Encode("a a", continues), (Tokens{kFirstPiece + 2, kFirstPiece}));
}

TEST(SentencePiece, PutsASpaceInFrontAfterSpecialTokensToo) {
  const auto t = Load(SpmMetadata({{"▁", -1}, {"a", -1}, {"<ud>", 0, 4}}));
  EXPECT_EQ(Encode(*t, "a<ud>a<s>a", true),
            (Tokens{kFirstPiece, kFirstPiece + 1, kFirstPiece + 2, kFirstPiece, kFirstPiece + 1, 1,
                    kFirstPiece, kFirstPiece + 1}));
}

TEST(SentencePiece, SpellsUnknownCharactersInBytes) {
  const auto t = Load(SpmMetadata({{"▁", -1}}));
  EXPECT_EQ(Encode(*t, "é"), (Tokens{kFirstPiece, SpmByte(0xC3), SpmByte(0xA9)}));
  EXPECT_EQ(t->Decode(Tokens{kFirstPiece, SpmByte(0xC3), SpmByte(0xA9)}), "é");
}

TEST(SentencePiece, UsesTheUnknownTokenWhereAByteTokenIsMissing) {
  const auto t =
      Load(MakeMetadata("llama", {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}, {"▁"}, {"a"}}));
  EXPECT_EQ(t->Encode("aéa"), (Tokens{1, 3, 4, 0, 4}));  // one for the character, not for each byte
  EXPECT_EQ(t->Decode(Tokens{1, 3, 4, 0, 4}), "aa");
}

TEST(SentencePiece, NeverTurnsTextIntoControlOrByteTokens) {
  const auto t = Load(SpmMetadata({{"▁"},
                                   {"<"},
                                   {"s"},
                                   {">"},
                                   {"<s"},
                                   {"0"},
                                   {"x"},
                                   {"A"},
                                   {"<0"},
                                   {"<0x"},
                                   {"<0x0"},
                                   {"<0x0A"}}));
  EXPECT_EQ(Encode(*t, "<s>"), (Tokens{kFirstPiece, kFirstPiece + 4, kFirstPiece + 3}));
  EXPECT_EQ(t->Decode(Encode(*t, "<0x0A>")), "<0x0A>");
}

TEST(SentencePiece, KeepsSpaceMarksOfTheTextApartFromSpaces) {
  const auto t = Load(SpmMetadata({{"▁", -1}, {"a", -1}}));
  EXPECT_EQ(Encode(*t, "a▁"),
            (Tokens{kFirstPiece, kFirstPiece + 1, SpmByte(0xE2), SpmByte(0x96), SpmByte(0x81)}));
  EXPECT_EQ(t->Decode(Encode(*t, "▁a ▁ ▁")), "▁a ▁ ▁");
}

TEST(SentencePiece, UserDefinedTokensOfSpacesMergeAndDecodeToSpaces) {
  const auto t = Load(SpmMetadata({{"▁", -5}, {"▁▁", 0, 4}, {"a", -5}}));
  EXPECT_EQ(Encode(*t, " a"), (Tokens{kFirstPiece + 1, kFirstPiece + 2}));
  EXPECT_EQ(t->Piece(kFirstPiece + 1), "  ");
}

TEST(SentencePiece, RemovesOnlyTheSpaceThatItPutInFront) {
  const auto t = Load(SpmMetadata({{"▁", -1}, {"▁a", 0}, {"a", -1}, {"  ", 0, 4}}));
  EXPECT_EQ(t->Decode(Tokens{1, kFirstPiece + 1, kFirstPiece + 1}), "a a");
  EXPECT_EQ(t->Decode(Tokens{1, kFirstPiece + 1}, false, false), " a");
  EXPECT_EQ(t->Decode(Tokens{1, kFirstPiece + 1}, true), "<s>a");
  EXPECT_EQ(t->Decode(Tokens{kFirstPiece + 2, kFirstPiece + 1}), "a a");
  EXPECT_EQ(t->Decode(Encode(*t, "  ")), "  ");  // behind a special token no space was added
}

TEST(SentencePiece, NanAndInfiniteScoresOnlyOrderTheMerges) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  const auto t = Load(SpmMetadata({{"a", nan}, {"b", inf}, {"ab", nan}, {"ba", inf}, {"▁", -inf}}));
  EXPECT_EQ(Encode(*t, "abab"),
            (Tokens{kFirstPiece + 4, kFirstPiece, kFirstPiece + 3, kFirstPiece + 1}));
}

TEST(SentencePiece, AddsBosByDefaultAndEosOnRequest) {
  formats::Metadata metadata =
      MakeMetadata("llama", {{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}, {"▁a"}, {"▁"}, {"a"}});
  EXPECT_EQ(Load(metadata)->Encode("a"), (Tokens{1, 3}));
  metadata.Set("tokenizer.ggml.add_bos_token", false);
  metadata.Set("tokenizer.ggml.add_eos_token", true);
  EXPECT_EQ(Load(metadata)->Encode("a"), (Tokens{3, 2}));
}

TEST(SentencePiece, GivesAnyBytesBack) {
  const std::vector<TestToken> few = {{"▁", -1}, {"a", -2}, {"▁a", -3}, {"th", -4}, {"t", -5},
                                      {"h", -5}, {"é", -3}, {"▁▁", -2}, {"世", -9}};
  const std::vector<TestToken> no_space = {{"a", -2}, {"é", -3}, {"a▁", -1}};
  std::mt19937 random(1);
  for (const auto& tokens : {few, no_space}) {
    const auto t = Load(SpmMetadata(tokens));
    for (int i = 0; i < 500; ++i) {
      const std::string bytes = RandomBytes(random, random() % 60);
      EXPECT_EQ(t->Decode(Encode(*t, bytes)), bytes);
    }
  }
}

}  // namespace
}  // namespace foretoken::text
