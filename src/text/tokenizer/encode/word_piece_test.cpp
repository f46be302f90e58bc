// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

using Tokens = std::vector<Token>;

// [UNK] [CLS] [SEP], then the given ones from 3 on.
formats::Metadata WordPieceMetadata(const std::vector<std::string>& tokens) {
  std::vector<TestToken> all = {{"[UNK]", 0, 2}, {"[CLS]", 0, 3}, {"[SEP]", 0, 3}};
  for (const std::string& text : tokens) all.push_back({text});
  formats::Metadata metadata = MakeMetadata("bert", all);
  metadata.Set("tokenizer.ggml.unknown_token_id", std::int64_t{0});
  metadata.Set("tokenizer.ggml.bos_token_id", std::int64_t{1});
  metadata.Set("tokenizer.ggml.seperator_token_id", std::int64_t{2});
  return metadata;
}

TEST(WordPiece, TakesTheLongestTokenAgainAndAgain) {
  const auto t = Load(WordPieceMetadata({"▁un", "▁unaff", "aff", "able", "▁"}));
  EXPECT_EQ(Encode(*t, "unaffable"), (Tokens{4, 6}));
  EXPECT_EQ(Encode(*t, " unaff  unable "), (Tokens{4, 3, 6}));
}

TEST(WordPiece, AWordThatCannotBeWrittenIsUnknown) {
  const auto t = Load(WordPieceMetadata({"▁un", "able"}));
  EXPECT_EQ(Encode(*t, "unx unable"), (Tokens{0, 3, 4}));
  EXPECT_EQ(Encode(*t, "able"), (Tokens{0}));  // it only continues words
}

TEST(WordPiece, PunctuationAndIdeographsAreWords) {
  const auto t = Load(WordPieceMetadata({"▁a", "▁,", "▁世", "▁界", "▁$", "▁+"}));
  EXPECT_EQ(Encode(*t, "a,a世界a$+"), (Tokens{3, 4, 3, 5, 6, 3, 7, 8}));
}

TEST(WordPiece, LowersAndLosesAccentsAsTheFileSays) {
  formats::Metadata metadata = WordPieceMetadata({"▁cafe", "▁café", "▁CAFÉ"});
  EXPECT_EQ(Encode(*Load(metadata), "CAFÉ cafe\u0301"), (Tokens{3, 3}));
  metadata.Set("tokenizer.ggml.normalizer.strip_accents", false);
  EXPECT_EQ(Encode(*Load(metadata), "CAFÉ"), (Tokens{4}));
  metadata.Set("tokenizer.ggml.normalizer.lowercase", false);
  EXPECT_EQ(Encode(*Load(metadata), "CAFÉ"), (Tokens{5}));
}

TEST(WordPiece, LeavesOutControlCharacters) {
  const auto t = Load(WordPieceMetadata({"▁ab"}));
  EXPECT_EQ(Encode(*t,
                   "a\x01\u200B\uFFFD"
                   "b\xFF"),
            (Tokens{3}));
}

TEST(WordPiece, PutsTheTextBetweenClsAndSep) {
  formats::Metadata metadata = WordPieceMetadata({"▁ab"});
  metadata.Set("tokenizer.ggml.add_bos_token", false);  // has no effect
  const auto t = Load(metadata);
  EXPECT_EQ(t->Encode("ab"), (Tokens{1, 3, 2}));
  EXPECT_EQ(t->Encode(""), (Tokens{1, 2}));
  EXPECT_EQ(Encode(*t, "ab[SEP]ab", true), (Tokens{3, 2, 3}));
  EXPECT_EQ(t->Decode(Tokens{1, 3, 3, 2}), "ab ab");
}

TEST(WordPiece, IdsOutsideTheVocabularyCountAsAbsent) {
  const auto t = Load(MakeMetadata("bert", {{"▁a"}}));  // the defaults are 100 to 102
  EXPECT_EQ(t->Encode("a b"), (Tokens{0}));
}

}  // namespace
}  // namespace foretoken::text
