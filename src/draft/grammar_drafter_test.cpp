// SPDX-License-Identifier: Apache-2.0
#include "draft/grammar_drafter.h"

#include "draft/drafting_testing.h"

namespace foretoken::draft {
namespace {

constexpr Token kGrammarEnd = 26;

// One token for each letter, and the end token.
std::shared_ptr<const grammar::Grammar> Letters(std::string_view gbnf) {
  std::vector<std::string> texts;
  for (char c = 'a'; c <= 'z'; ++c) texts.emplace_back(1, c);
  texts.emplace_back();
  const auto trie =
      std::make_shared<const grammar::TokenTrie>(texts, std::vector<Token>{kGrammarEnd});
  return *grammar::Grammar::Compile(gbnf, trie, [](std::string_view text) {
    Tokens tokens;
    for (const char c : text) tokens.push_back(c - 'a');
    return tokens;
  });
}

Tokens Spelt(std::string_view text) {
  Tokens tokens;
  for (const char c : text) tokens.push_back(c == '.' ? kGrammarEnd : c - 'a');
  return tokens;
}

class GrammarDrafts : public testing::Test {
 protected:
  GrammarDrafter drafter_{2};

  void Begin(SeqId seq, std::shared_ptr<const grammar::Grammar> grammar, int min_new_tokens = 0) {
    const Tokens ends = {kGrammarEnd};
    Start(drafter_, {1},
          {.seq = seq,
           .sampling = {},
           .end_tokens = ends,
           .min_new_tokens = min_new_tokens,
           .grammar = std::move(grammar)});
  }
  void Commit(SeqId seq, std::string_view text) { draft::Commit(drafter_, Spelt(text), seq); }
  Tokens Draft(SeqId seq, int most = 64) { return Drafted(drafter_, most, seq); }
};

TEST_F(GrammarDrafts, AreWhatTheGrammarForces) {
  Begin(0, Letters("root ::= \"key\" [a-c] \"value\""));
  EXPECT_EQ(Draft(0), Spelt("key"));
  EXPECT_EQ(Draft(0, 2), Spelt("ke"));
  Commit(0, "k");
  EXPECT_EQ(Draft(0), Spelt("ey"));
  Commit(0, "ey");
  EXPECT_TRUE(Draft(0).empty());
  Commit(0, "b");
  EXPECT_EQ(Draft(0), Spelt("value."));
  Commit(0, "value");
  EXPECT_EQ(Draft(0), Spelt("."));
}

TEST_F(GrammarDrafts, OfSequencesAreTheirOwn) {
  Begin(0, Letters("root ::= \"abc\""));
  Begin(1, Letters("root ::= \"xyz\""));
  Commit(1, "x");
  EXPECT_EQ(Draft(0), Spelt("abc."));
  EXPECT_EQ(Draft(1), Spelt("yz."));
  drafter_.End(1);
  EXPECT_TRUE(Draft(1).empty());
  Begin(1, nullptr);
  Commit(1, "abc");
  EXPECT_TRUE(Draft(1).empty());
}

TEST_F(GrammarDrafts, HoldNoEndThatIsMasked) {
  Begin(0, Letters("root ::= \"ab\""), 10);
  EXPECT_EQ(Draft(0), Spelt("ab"));
}

TEST_F(GrammarDrafts, SpeakLouderTheMoreThereAre) {
  Begin(0, Letters("root ::= \"abcdefghij\" [a-z]"));
  const std::string all = "abcdefghij";
  std::vector<int> evidence;
  for (const char c : all) {
    evidence.push_back(Proposal(drafter_, 64).evidence);
    Commit(0, std::string(1, c));
  }
  EXPECT_EQ(evidence, (std::vector<int>{3, 3, 3, 2, 2, 2, 2, 1, 1, 0}));
}

}  // namespace
}  // namespace foretoken::draft
