// SPDX-License-Identifier: Apache-2.0
// The work for a grammar's first mask grows no faster than the vocabulary and the grammar.

#include "base/growth_testing.h"
#include "grammar/grammar.h"
#include "grammar/words_testing.h"

namespace foretoken::grammar {
namespace {

// A mask of a larger vocabulary costs more in proportion to its tokens.
TEST(GrammarGrowth, AMaskGrowsWithTheVocabularyAlone) {
  ExpectLinear("words", {2000, 8000}, [](std::size_t n) {
    const auto words = Words(n);
    return [words] { (void)Grammar::Compile("root ::= ([a-z]+ \" \"){1,50}", words); };
  });
}

// The cost of a grammar's first mask grows only with the number of its alternatives.
TEST(GrammarGrowth, AMaskGrowsWithTheGrammarAlone) {
  const auto words = Words(4000);
  ExpectLinear("alternatives", {250, 1000}, [&](std::size_t n) {
    std::string gbnf = "root ::= \"x\"";
    std::mt19937 random(7);
    for (std::size_t i = 0; i < n; ++i) {
      gbnf += " | \"";
      for (int c = 0; c < 6; ++c) gbnf += static_cast<char>('a' + random() % 26);
      gbnf += "\"";
    }
    return [words, gbnf] { EXPECT_TRUE(Grammar::Compile(gbnf, words).has_value()); };
  });
}

// A mask of many states: each word of the vocabulary is an alternative.
TEST(GrammarGrowth, AMaskGrowsWithItsStatesAlone) {
  ExpectLinear("states", {500, 2000}, [](std::size_t n) {
    const auto words = Words(n);
    std::string gbnf = "root ::= \"x\"";
    for (std::size_t i = 0; i < n; ++i)
      gbnf += " | \"" + std::string(words->Text(static_cast<Token>(i))) + "\"";
    return [words, gbnf] { EXPECT_TRUE(Grammar::Compile(gbnf, words).has_value()); };
  });
}

}  // namespace
}  // namespace foretoken::grammar
