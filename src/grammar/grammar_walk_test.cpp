// SPDX-License-Identifier: Apache-2.0
#include "grammar/grammar_walk.h"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace foretoken::grammar {
namespace {

// Single letters, and words of them, like the tokens of real vocabularies.
std::shared_ptr<const TokenTrie> WordsOf(std::size_t n = 20'000) {
  std::mt19937 random(1);
  std::vector<std::string> texts;
  for (char c = 'a'; c <= 'z'; ++c) texts.emplace_back(1, c);
  while (texts.size() < n) {
    std::string text;
    for (auto length = 1 + random() % 8; length > 0; --length)
      text += static_cast<char>('a' + random() % 26);
    texts.push_back(text);
  }
  return std::make_shared<const TokenTrie>(texts, std::vector<Token>{});
}

std::shared_ptr<const TokenTrie> Letters() {
  return WordsOf(26);
}

GrammarWalk WalkOf(const std::shared_ptr<const Grammar>& grammar, int room = 1000) {
  GrammarWalk walk(grammar);
  walk.Begin(room);
  return walk;
}

std::vector<float> MaskOf(GrammarWalk& walk, std::size_t n) {
  std::vector<float> logits(n, 1.0f);
  EXPECT_TRUE(walk.Mask(logits));
  return logits;
}

void PushAll(GrammarWalk& walk, std::string_view text) {
  for (const char c : text) walk.Push(c - 'a');
}

GrammarFailure FailureOf(GrammarWalk& walk) {
  std::vector<float> logits(26, 1.0f);
  EXPECT_FALSE(walk.Mask(logits));
  EXPECT_EQ(logits, std::vector<float>(26, 1.0f));  // no part of a mask
  return walk.FailureWithin(walk.length());
}

constexpr std::string_view kNested = "root ::= \"a\" root \"b\" | \"c\"";

TEST(GrammarWalk, GoesOnAfterTheStatesWereForgotten) {
  const auto grammar = *Grammar::Compile(kNested, Letters());
  auto walk = WalkOf(grammar), other = WalkOf(grammar);
  PushAll(walk, "aaac"), PushAll(other, "aaac");
  for (int i = 0; i < 3; ++i) {
    grammar->Trim();
    EXPECT_EQ(MaskOf(walk, 26), MaskOf(other, 26)) << i;
    grammar->Trim();
    walk.Push('b' - 'a'), other.Push('b' - 'a');
    EXPECT_EQ(walk.CanEnd(), i == 2);
  }
  grammar->Trim();
  walk.Pop(5);
  const Token expected[] = {'a' - 'a', 'c' - 'a', 'b' - 'a', 'b' - 'a', 'b' - 'a', 'b' - 'a'};
  EXPECT_EQ(walk.Follows(expected, {}), 5);
  EXPECT_EQ(walk.length(), 2);
  EXPECT_EQ(walk.FailureWithin(1000), GrammarFailure::kNone);
}

// More states than fit into memory together, but not at once: room is made, and the results do not
// change.
TEST(GrammarWalk, MakesRoomForWhatItNeeds) {
  const auto trie = WordsOf();
  const auto grammar = *Grammar::Compile("root ::= [a-z]{0,20000}", trie);
  auto walk = WalkOf(grammar, 20'001);
  std::mt19937 random(3);
  std::size_t most = 0;
  for (int i = 0; i < 4000; ++i) {
    ASSERT_EQ(MaskOf(walk, 26)[5], 1.0f) << i;
    walk.Push(static_cast<Token>(random() % 26));
    most = std::max(most, grammar->bytes());
  }
  EXPECT_LT(most, GrammarStates::kMaxStateBytes + Grammar::kMaxMaskBytes + (std::size_t{4} << 20));
  EXPECT_TRUE(walk.CanEnd());
}

TEST(GrammarWalk, FailsWhereAnAmbiguousTextHasTooManySituations) {
  const auto grammar = *Grammar::Compile(
      "root ::= \"x\" root \"y\" | \"x\" root \"z\" | \"x\" root \"yz\"{0,3} | \"\"", Letters());
  auto walk = WalkOf(grammar);
  PushAll(walk, std::string(30, 'x'));
  EXPECT_EQ(FailureOf(walk), GrammarFailure::kAmbiguous);
  // Other texts of the grammar continue.
  auto other = WalkOf(grammar);
  PushAll(other, "xxxx");
  EXPECT_EQ(MaskOf(other, 26)['y' - 'a'], 1.0f);
}

TEST(GrammarWalk, TokensThatAreTakenBackTakeNoFailureWithThem) {
  const auto grammar = *Grammar::Compile(
      "root ::= \"x\" root \"y\" | \"x\" root \"z\" | \"x\" root \"yz\"{0,3} | \"\"", Letters());
  auto walk = WalkOf(grammar);
  PushAll(walk, "xxxx");
  PushAll(walk, std::string(30, 'x'));
  EXPECT_EQ(FailureOf(walk), GrammarFailure::kAmbiguous);
  walk.Pop(30);
  EXPECT_EQ(walk.FailureWithin(4), GrammarFailure::kNone);
  EXPECT_EQ(walk.FailureWithin(34), GrammarFailure::kAmbiguous);
  walk.ForgetFailure();
  EXPECT_EQ(walk.FailureWithin(34), GrammarFailure::kNone);
  EXPECT_EQ(MaskOf(walk, 26)['y' - 'a'], 1.0f);
  const std::vector<Token> many(40, 'x' - 'a');
  EXPECT_LT(walk.Follows(many, {}), 40);
  EXPECT_EQ(walk.FailureWithin(1000), GrammarFailure::kNone);
}

// A text whose masks always need new states: the work of the whole text is bounded too.
TEST(GrammarWalk, FailsWhereItsTextTakesTooMuchWork) {
  const auto trie = WordsOf();
  const auto grammar =
      *Grammar::Compile("root ::= ([a-z]? [a-z] | [a-m]* [a-z]{1,40} [n-z]){1,60}", trie);
  auto walk = WalkOf(grammar, 9000);
  std::vector<float> logits(26, 1.0f);
  std::mt19937 random(3);
  while (walk.length() < 9000 && walk.Mask(logits)) walk.Push(static_cast<Token>(random() % 26));
  EXPECT_EQ(walk.FailureWithin(walk.length()), GrammarFailure::kRequestWork) << walk.length();
}

TEST(GrammarWalk, AgreesWithTheGrammarFromManyThreads) {
  const auto trie = WordsOf(3000);
  const auto grammar = *Grammar::Compile("root ::= ([a-m] root [n-z] | [aeiou]) [x-z]?", trie);
  const auto alone = *Grammar::Compile("root ::= ([a-m] root [n-z] | [aeiou]) [x-z]?", trie);
  std::vector<std::vector<float>> expected;
  auto walk = WalkOf(alone);
  for (const char c : std::string("abcdeoxyn")) {
    expected.push_back(MaskOf(walk, 3000));
    walk.Push(c - 'a');
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; round < 20; ++round) {
        auto mine = WalkOf(grammar);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          if (t == 0 && i % 4 == 0) grammar->Trim();
          EXPECT_EQ(MaskOf(mine, 3000), expected[i]);
          mine.Push("abcdeoxyn"[i] - 'a');
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace foretoken::grammar
