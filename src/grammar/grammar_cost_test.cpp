// SPDX-License-Identifier: Apache-2.0
// The cost of following a client's grammar stays within its limits.
#include <gtest/gtest.h>

#include <algorithm>

#include "grammar/grammar_walk.h"
#include "grammar/words_testing.h"

namespace foretoken::grammar {
namespace {

// The result of following a random text.
struct Followed {
  std::string message;  // of the failure; empty if there was none
  int length = 0;
  std::int64_t work = 0;
  std::size_t most_bytes = 0;
};

Followed Follow(std::string_view gbnf, const std::shared_ptr<const TokenTrie>& words) {
  const auto n = static_cast<std::size_t>(words->vocabulary());
  Followed followed;
  const auto grammar = Grammar::Compile(gbnf, words);
  if (!grammar) {
    followed.message = grammar.error().message;
    return followed;
  }
  GrammarWalk walk(*grammar);
  walk.Begin(2000);
  std::vector<float> logits(n);
  std::mt19937 random(2);
  while (walk.length() < 500 && walk.Mask(logits)) {
    walk.Push(static_cast<Token>(random() % n));
    followed.most_bytes = std::max(followed.most_bytes, (*grammar)->bytes());
  }
  const GrammarFailure failure = walk.FailureWithin(walk.length());
  if (failure != GrammarFailure::kNone) followed.message = ErrorOf(failure).message;
  followed.length = walk.length();
  followed.work = walk.work();
  return followed;
}

// A hundred bytes that once took gigabytes, and minutes in which all other requests waited.
TEST(GrammarCost, GrammarsWithManyStatesEndInAnErrorThatNamesTheBudget) {
  const auto words = Words(50'000);
  const std::pair<const char*, const char*> cases[] = {
      {"root ::= [a-z]* [aeiou] [a-z]{30}", ""},
      {"root ::= ([a-z]? [a-z] | [a-m]* [a-z]{1,40} [n-z]){1,60}",
       "has taken more than 4194304 steps of it, and 65536 for each token"},
      {"root ::= \"x\" root \"y\" | \"x\" root \"z\" | [a-z] root root | \"\"",
       "can continue in more than 16384 ways at once"},
      {"root ::= [a-z] (\"\" | root) (\"\" | root)", "its states take more than 16 MiB"},
      {"root ::= ([a-z] | [a-z] [a-z]){1,9000}", "its states take more than 16 MiB"},
      {"root ::= (\"\"? [a-z]? | [a-z]{1,9}){9999}",
       "can continue in more than 16384 ways at once"},
      {"root ::= (([a-z]*)* [a-z]*){500}", ""},
      {"root ::= (\"\"*)* [a-z]+", ""},
  };
  for (const auto& [gbnf, words_of_message] : cases) {
    const Followed followed = Follow(gbnf, words);
    EXPECT_NE(followed.message.find(words_of_message), std::string::npos)
        << gbnf << ": " << followed.message;
    EXPECT_EQ(followed.message.empty(), std::string(words_of_message).empty())
        << gbnf << ": " << followed.message;
    EXPECT_LE(followed.work, GrammarWalk::kMaxWork +
                                 GrammarWalk::kMaxWorkPerToken * followed.length +
                                 3 * GrammarStates::kMaxStepWork)
        << gbnf;
    EXPECT_LT(followed.most_bytes, std::size_t{40} << 20) << gbnf;
  }
}

// Work is counted, not timed: a request ends at the same token every time.
TEST(GrammarCost, ABudgetEndsATextAtTheSameToken) {
  const auto words = Words(5000);
  const char* const gbnf = "root ::= ([a-z] | [a-z] [a-z]){1,9000}";
  const Followed first = Follow(gbnf, words), second = Follow(gbnf, words);
  EXPECT_FALSE(first.message.empty());
  EXPECT_EQ(first.message, second.message);
  EXPECT_EQ(first.length, second.length);
  EXPECT_EQ(first.work, second.work);
}

}  // namespace
}  // namespace foretoken::grammar
