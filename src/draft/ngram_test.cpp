// SPDX-License-Identifier: Apache-2.0
#include "draft/ngram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

namespace foretoken::draft {
namespace {

// The rule as it reads, by scanning the whole text for every draft.
std::vector<Token> NaiveDraft(const std::vector<Token>& committed, int n_max, int n_min, int most) {
  std::vector<Token> text = committed;
  while (static_cast<int>(text.size() - committed.size()) < most) {
    Token best = kNoToken;
    for (int n = n_max; n >= n_min && best == kNoToken; --n) {
      if (n > static_cast<int>(text.size())) continue;
      std::map<Token, std::pair<int, int>> followers;  // count, latest end
      int seen = 0;
      for (int end = static_cast<int>(committed.size()) - 2; end >= n - 1 && seen < 32; --end) {
        if (!std::equal(text.end() - n, text.end(), committed.begin() + (end + 1 - n))) continue;
        ++seen;
        auto& [count, latest] = followers[committed[static_cast<std::size_t>(end + 1)]];
        latest = std::max(latest, end);
        ++count;
      }
      std::pair<int, int> most_votes{0, 0};
      for (const auto& [token, votes] : followers)
        if (votes > most_votes) most_votes = votes, best = token;
    }
    if (best == kNoToken) break;
    text.push_back(best);
  }
  return {text.begin() + static_cast<std::ptrdiff_t>(committed.size()), text.end()};
}

std::vector<Token> Propose(NgramDrafter& drafter, SeqId seq, int most) {
  const Ask ask{seq, most};
  round::Proposal proposal;
  drafter.Propose({&ask, 1}, {&proposal, 1});
  EXPECT_EQ(proposal.q, nullptr);
  return {proposal.tokens.begin(), proposal.tokens.end()};
}

void Commit(NgramDrafter& drafter, SeqId seq, const std::vector<Token>& tokens) {
  const Observation observation{seq, tokens, 0, 0};
  drafter.Observe({&observation, 1});
}

TEST(NgramDrafter, DraftsWhatANaiveScanOfTheTextDrafts) {
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    const int alphabet = 2 + round % 7, n_max = 1 + round % 4, n_min = 1 + round % n_max;
    NgramDrafter drafter(2, n_max, n_min, 1000);
    std::vector<Token> texts[2];
    for (SeqId seq = 0; seq < 2; ++seq) {
      for (int i = 0; i < 1 + round; ++i)
        texts[seq].push_back(static_cast<Token>(random() % static_cast<unsigned>(alphabet)));
      drafter.Begin({.seq = seq,
                     .prompt = texts[seq],
                     .max_new_tokens = 200,
                     .sampling = {},
                     .end_tokens = {},
                     .noise = {}});
    }
    for (int step = 0; step < 40; ++step)
      for (SeqId seq = 0; seq < 2; ++seq) {
        ASSERT_EQ(Propose(drafter, seq, 6), NaiveDraft(texts[seq], n_max, n_min, 6))
            << "round " << round << " step " << step;
        std::vector<Token> next;
        for (unsigned i = 0; i <= random() % 3; ++i)
          next.push_back(static_cast<Token>(random() % static_cast<unsigned>(alphabet)));
        Commit(drafter, seq, next);
        texts[seq].insert(texts[seq].end(), next.begin(), next.end());
      }
  }
}

TEST(NgramDrafter, ProposesNothingForWordsItNeverSaw) {
  NgramDrafter drafter(1, 3, 1, 100);
  const std::vector<Token> prompt = {1, 2, 3, 4};
  drafter.Begin(
      {.prompt = prompt, .max_new_tokens = 10, .sampling = {}, .end_tokens = {}, .noise = {}});
  EXPECT_TRUE(Propose(drafter, 0, 4).empty());
}

TEST(NgramDrafter, TheLongestContextWinsOverTheMostFrequentFollower) {
  NgramDrafter drafter(1, 2, 1, 100);
  const std::vector<Token> prompt = {5, 1, 7, 9, 1, 8,
                                     9, 1, 8, 5, 1};  // after "1": 8 twice; after "5 1": 7
  drafter.Begin(
      {.prompt = prompt, .max_new_tokens = 10, .sampling = {}, .end_tokens = {}, .noise = {}});
  EXPECT_EQ(Propose(drafter, 0, 1), std::vector<Token>{7});
}

TEST(NgramDrafter, TheMostFrequentFollowerWinsAndOfEqualsTheLatest) {
  NgramDrafter drafter(2, 1, 1, 100);
  const std::vector<Token> frequent = {1, 8, 1, 8, 1, 7, 1}, recent = {1, 8, 1, 7, 1};
  drafter.Begin({.seq = 0,
                 .prompt = frequent,
                 .max_new_tokens = 10,
                 .sampling = {},
                 .end_tokens = {},
                 .noise = {}});
  drafter.Begin({.seq = 1,
                 .prompt = recent,
                 .max_new_tokens = 10,
                 .sampling = {},
                 .end_tokens = {},
                 .noise = {}});
  EXPECT_EQ(Propose(drafter, 0, 1), std::vector<Token>{8});
  EXPECT_EQ(Propose(drafter, 1, 1), std::vector<Token>{7});
}

TEST(NgramDrafter, DraftsAreNoEvidenceForDrafts) {
  NgramDrafter drafter(1, 2, 1, 100);
  const std::vector<Token> prompt = {1, 2, 1, 3, 1, 2, 1, 2};
  drafter.Begin(
      {.prompt = prompt, .max_new_tokens = 10, .sampling = {}, .end_tokens = {}, .noise = {}});
  const auto first = Propose(drafter, 0, 8);
  EXPECT_EQ(first, NaiveDraft(prompt, 2, 1, 8));
  EXPECT_EQ(Propose(drafter, 0, 8), first);  // nor does proposing leave a trace
}

TEST(NgramDrafter, StopsWhereTheTextOutgrowsWhatWasAnnounced) {
  NgramDrafter drafter(1, 3, 1, 6);
  const std::vector<Token> prompt = {1, 2, 1, 2};
  drafter.Begin({.prompt = prompt,
                 .max_new_tokens = std::numeric_limits<int>::max(),
                 .sampling = {},
                 .end_tokens = {},
                 .noise = {}});
  EXPECT_EQ(Propose(drafter, 0, 2), (std::vector<Token>{1, 2}));
  Commit(drafter, 0, std::vector<Token>(50, 1));
  EXPECT_TRUE(Propose(drafter, 0, 2).empty());
}

TEST(NgramDrafter, ProposesNoMoreThanItIsAskedFor) {
  NgramDrafter drafter(1, 3, 1, 1000);
  const std::vector<Token> prompt(20, 1);
  drafter.Begin(
      {.prompt = prompt, .max_new_tokens = 500, .sampling = {}, .end_tokens = {}, .noise = {}});
  EXPECT_TRUE(Propose(drafter, 0, 0).empty());
  EXPECT_EQ(Propose(drafter, 0, 5).size(), 5u);
  EXPECT_EQ(Propose(drafter, 0, 1000).size(), 64u);
}

TEST(NgramDrafter, EndsADraftWithAnEndTokenAndKeepsIt) {
  NgramDrafter drafter(1, 3, 1, 100);
  const std::vector<Token> prompt = {4, 5, 2, 6, 4}, ends = {2};
  drafter.Begin(
      {.prompt = prompt, .max_new_tokens = 10, .sampling = {}, .end_tokens = ends, .noise = {}});
  EXPECT_EQ(Propose(drafter, 0, 6), (std::vector<Token>{5, 2}));
}

TEST(NgramDrafter, DoesNotProposeAnEndTokenThatIsStillMasked) {
  NgramDrafter drafter(1, 3, 1, 100);
  const std::vector<Token> prompt = {4, 5, 2, 6, 4}, ends = {2};
  drafter.Begin({.prompt = prompt,
                 .max_new_tokens = 10,
                 .sampling = {},
                 .end_tokens = ends,
                 .min_new_tokens = 3,
                 .noise = {}});
  EXPECT_EQ(Propose(drafter, 0, 6), std::vector<Token>{5});
}

TEST(NgramDrafter, ForgetsATextWhenItsSequenceEnds) {
  NgramDrafter drafter(1, 3, 1, 100);
  const std::vector<Token> first = {1, 2, 3, 1, 2, 3}, second = {1, 2};
  drafter.Begin(
      {.prompt = first, .max_new_tokens = 10, .sampling = {}, .end_tokens = {}, .noise = {}});
  EXPECT_EQ(Propose(drafter, 0, 2), (std::vector<Token>{1, 2}));
  drafter.End(0);
  drafter.Begin(
      {.prompt = second, .max_new_tokens = 10, .sampling = {}, .end_tokens = {}, .noise = {}});
  EXPECT_TRUE(Propose(drafter, 0, 2).empty());
}

}  // namespace
}  // namespace foretoken::draft
