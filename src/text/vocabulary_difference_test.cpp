// SPDX-License-Identifier: Apache-2.0
#include "text/vocabulary_difference.h"

#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

std::unique_ptr<text::Tokenizer> ComparedTokenizer(int n, const std::string& special) {
  std::vector<text::TestToken> tokens;
  for (int i = 0; i < n; ++i) tokens.push_back({"t" + std::to_string(i)});
  tokens[3].text = special;
  return *text::Tokenizer::Load(text::SpmMetadata(tokens));
}

TEST(VocabularyDifference, CountsWhatIsSharedAndNamesTheRest) {
  const auto target = ComparedTokenizer(40, "<|end|>"), same = ComparedTokenizer(40, "<|end|>"),
             shorter = ComparedTokenizer(30, "<|stop|>"), longer = ComparedTokenizer(50, "<|end|>");
  const auto equal = CompareVocabularies(*target, *same);
  EXPECT_TRUE(equal.same());
  EXPECT_EQ(equal.obstacle(), "");
  const auto of_shorter = CompareVocabularies(*target, *shorter);
  EXPECT_FALSE(of_shorter.same());
  EXPECT_EQ(of_shorter.shared(), 288);
  EXPECT_EQ(of_shorter.differing, std::vector<std::int32_t>{text::kFirstSpm + 3});
  EXPECT_EQ(of_shorter.Describe(),
            "299 and 289 tokens, of which 288 are shared; 1 is of other texts, first 262: "
            "'<|end|>' / '<|stop|>'");
  EXPECT_EQ(of_shorter.obstacle(), "");
  const auto of_longer = CompareVocabularies(*target, *longer);
  EXPECT_EQ(of_longer.shared(), 299);
  EXPECT_EQ(of_longer.Describe(), "299 and 309 tokens, of which 299 are shared");
}

// A file's texts may be of any length, and hold what a terminal obeys.
TEST(VocabularyDifference, NamesTextsShort) {
  const auto target = ComparedTokenizer(40, "<|end|>"),
             hostile = ComparedTokenizer(40, "\x1b[31m" + std::string(70'000, 'a'));
  const std::string text = CompareVocabularies(*target, *hostile).Describe();
  EXPECT_LT(text.size(), 250u);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
}

// The bound counts the target's tokens: a draft may have many more.
TEST(VocabularyDifference, IsAnObstacleFromATenthOfTheTargetsTokensOn) {
  const auto difference = [](int target, int draft, int differing) {
    VocabularyDifference d{.target = target, .draft = draft, .differing = {}, .first = {}};
    for (int id = 0; id < differing; ++id) d.differing.push_back(id);
    return d.obstacle();
  };
  EXPECT_EQ(difference(1000, 900, 0), "");
  EXPECT_NE(difference(1000, 899, 0), "");
  EXPECT_EQ(difference(1000, 9000, 100), "");
  EXPECT_NE(difference(1000, 9000, 101), "");
  EXPECT_EQ(difference(152064, 151936, 22), "");  // Qwen2.5 7B and 0.5B, and a few special tokens
}

}  // namespace
}  // namespace foretoken::text
