// SPDX-License-Identifier: Apache-2.0
#include "text/frequent_tokens.h"

#include <algorithm>

#include "text/tokenizer/test_vocabulary.h"

namespace foretoken::text {
namespace {

using Tokens = std::vector<Token>;

// Ids: 0 <unk>, 1 <s>, 2 </s>, 3 to 258 bytes, then these.
constexpr Token kFirst = 259;
std::unique_ptr<Tokenizer> FrequentVocabulary() {
  return Load(SpmMetadata({{"he", -1},
                           {"ll", -2},
                           {"hell", -3},
                           {"o", -4},
                           {"é", -5},
                           {".", -6},
                           {"h", -7},
                           {"e", -8},
                           {"l", -9}}));
}

bool Has(const Tokens& tokens, Token token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

TEST(FrequentTokens, AreAsManyAsAskedForAndAscend) {
  const auto tokenizer = FrequentVocabulary();
  for (const int n : {1, 5, 100, 268}) {
    const Tokens tokens = FrequentTokens(*tokenizer, n, "hello");
    EXPECT_EQ(tokens.size(), static_cast<std::size_t>(n));
    EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end()));
    EXPECT_EQ(std::adjacent_find(tokens.begin(), tokens.end()), tokens.end());
  }
}

TEST(FrequentTokens, AreAllWhereMoreAreAskedForThanThereAre) {
  const auto tokenizer = FrequentVocabulary();
  EXPECT_EQ(FrequentTokens(*tokenizer, 5000, "").size(), 268u);
}

TEST(FrequentTokens, HoldTheEnds) {
  const auto tokenizer = FrequentVocabulary();
  EXPECT_EQ(FrequentTokens(*tokenizer, 1, "hello"), Tokens{2});
}

TEST(FrequentTokens, ComeFromTheSampleByFrequency) {
  const auto tokenizer = FrequentVocabulary();
  // "he" three times, "." once: with room for the end and one more, "he" is chosen.
  EXPECT_EQ(FrequentTokens(*tokenizer, 2, "hehehe."), (Tokens{2, kFirst}));
  const Tokens three = FrequentTokens(*tokenizer, 4, "hehehe.");
  EXPECT_TRUE(Has(three, kFirst + 5));
}

TEST(FrequentTokens, PreferAsciiCharactersToTheOrderOfIds) {
  const auto tokenizer = FrequentVocabulary();
  // 128 byte tokens and five tokens of the vocabulary are one ASCII character each.
  const Tokens tokens = FrequentTokens(*tokenizer, 1 + 128 + 5, "");
  for (const Token token : {3, 5, 6, 7, 8}) EXPECT_TRUE(Has(tokens, kFirst + token)) << token;
  EXPECT_FALSE(Has(tokens, kFirst)) << "he";
  EXPECT_FALSE(Has(tokens, kFirst + 4)) << "not ASCII";
}

}  // namespace
}  // namespace foretoken::text
