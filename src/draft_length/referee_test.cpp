// SPDX-License-Identifier: Apache-2.0
#include "draft_length/referee.h"

#include <gtest/gtest.h>

#include <random>

namespace foretoken::draft_length {
namespace {

using Decision = Referee::Decision;

// Passes in which drafts, where they are allowed, multiply the tokens per second by `gain`.
struct MatchPlayed {
  double over_plain = 0;
  double with_drafts = 0;  // the share of the passes
};
class Match {
 public:
  explicit Match(int n, unsigned seed = 1) : n_(n), random_(seed) {}

  MatchPlayed Play(int passes, double gain, double pace = 1) {
    double us = 0, tokens = 0;
    int drafted = 0;
    std::uniform_real_distribution<double> uniform(0, 1);
    for (int i = 0; i < passes; ++i) {
      const bool drafts = referee_.Next(n_) == Decision::kDraft;
      const double lost = uniform(random_) < 0.01 ? 9000 : 0;  // sometimes a pass loses its core
      const double pass_us = pace * 500 * (0.9 + 0.2 * uniform(random_)) + lost;
      const int made = drafts ? n_ + static_cast<int>(uniform(random_) * (2 * n_ + 1)) : n_;
      const double took = drafts ? pass_us * 2 / gain : pass_us;  // twice the tokens on average
      referee_.Record(n_, drafts, made, took);
      drafted += drafts;
      tokens += drafts ? 2.0 * n_ : n_;
      us += took;
    }
    return {tokens / n_ * pace * (500 + 90) / us, static_cast<double>(drafted) / passes};
  }

 private:
  const int n_;
  std::mt19937 random_;
  Referee referee_{16};
};

TEST(Referee, LetsDraftsThatPayBe) {
  for (const int n : {1, 8})
    for (const double gain : {1.1, 1.5, 3.0}) {
      Match match(n);
      EXPECT_GT(match.Play(20000, gain).with_drafts, 0.97) << n << " " << gain;
    }
}

TEST(Referee, SuspendsDraftsThatLose) {
  for (const int n : {1, 8})
    for (const double gain : {0.9, 0.7, 0.3}) {
      Match match(n);
      match.Play(4000, gain);
      // A loss this small is hard to tell from chance.
      EXPECT_LT(match.Play(20000, gain).with_drafts, gain > 0.8 ? 0.1 : 0.01) << n << " " << gain;
    }
  // The control: a request that the referee never stops always drafts.
  Referee referee(1);
  EXPECT_EQ(referee.Next(1), Decision::kDraft);
}

TEST(Referee, LosesLittleOverall) {
  for (unsigned seed = 1; seed <= 5; ++seed)
    EXPECT_GT(Match(8, seed).Play(10000, 0.8).over_plain, 0.95) << seed;
}

TEST(Referee, TriesAgainWhenDraftsPay) {
  Match match(8);
  match.Play(2000, 0.7);
  match.Play(20000, 1.5);
  EXPECT_GT(match.Play(2000, 1.5).with_drafts, 0.9);
}

TEST(Referee, IsNotMisledByThePaceOfTheMachine) {
  Match match(8);
  for (int minute = 0; minute < 40; ++minute) match.Play(500, 1.3, minute % 2 == 0 ? 1 : 1.6);
  EXPECT_GT(match.Play(4000, 1.3).with_drafts, 0.9);
}

TEST(Referee, KeepsNumbersOfSequencesApart) {
  Referee referee(4);
  for (int i = 0; i < 2000; ++i) {
    const bool drafts = referee.Next(4) == Decision::kDraft;
    referee.Record(4, drafts, drafts ? 6 : 4, drafts ? 1000 : 500);
  }
  EXPECT_NE(referee.Next(4), Decision::kDraft);
  EXPECT_EQ(referee.Next(3), Decision::kDraft);
  EXPECT_EQ(referee.Next(1), Decision::kDraft);
}

TEST(Referee, ComparesSoonerWhereMoreDecodeTogether) {
  const auto first = [](int n) {
    Referee referee(8);
    int passes = 0;
    for (; referee.Next(n) == Decision::kDraft; ++passes) referee.Record(n, true, 2 * n, 500);
    return passes;
  };
  EXPECT_EQ(first(1), 256);
  EXPECT_EQ(first(2), 64);
  EXPECT_EQ(first(8), 64);
}

}  // namespace
}  // namespace foretoken::draft_length
