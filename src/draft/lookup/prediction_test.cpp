// SPDX-License-Identifier: Apache-2.0
#include "draft/lookup/prediction.h"

#include <numeric>
#include <random>

#include "draft/drafting_testing.h"

namespace foretoken::draft {
namespace {

class Prediction : public testing::Test {
 protected:
  PredictionDrafter drafter_{2, 1000};

  void Begin(const Tokens& prediction, const Tokens& prompt = {1}) {
    Start(drafter_, prompt, {.sampling = {}, .prediction = prediction});
  }
  void Commit(const Tokens& tokens) { draft::Commit(drafter_, tokens); }
  Tokens Draft(int most) { return Drafted(drafter_, most); }
};

TEST_F(Prediction, IsDraftedFromItsBeginningAndAsLongAsTheOutputFollowsIt) {
  Begin({10, 11, 12, 13, 14});
  EXPECT_EQ(Draft(3), (Tokens{10, 11, 12}));
  Commit({10, 11});
  EXPECT_EQ(Draft(8), (Tokens{12, 13, 14}));
  Commit({12, 13, 14});
  EXPECT_TRUE(Draft(8).empty());
}

TEST_F(Prediction, GoesOnAfterTokensThatWereInserted) {
  Begin({10, 11, 12, 13, 14, 15});
  Commit({10, 11, 90, 91, 92});
  EXPECT_TRUE(Draft(3).empty());
  Commit({12});  // one token may match by chance
  EXPECT_TRUE(Draft(3).empty());
  Commit({13});
  EXPECT_EQ(Draft(3), (Tokens{14, 15}));
}

TEST_F(Prediction, GoesOnAfterTokensThatWereLeftOut) {
  Begin({10, 11, 12, 13, 14, 15, 16, 17});
  Commit({10, 11, 14, 15});
  EXPECT_EQ(Draft(3), (Tokens{16, 17}));
}

TEST_F(Prediction, GoesOnAfterTokensThatWereReplaced) {
  Begin({10, 11, 12, 13, 14, 15, 16, 17});
  Commit({10, 11, 92, 93, 14, 15});
  EXPECT_EQ(Draft(3), (Tokens{16, 17}));
}

TEST_F(Prediction, GoesOnWithinARoundThatLeftItAndCameBack) {
  Begin({10, 11, 12, 13, 14, 15});
  Commit({90, 10, 11});
  EXPECT_EQ(Draft(2), (Tokens{12, 13}));
}

TEST_F(Prediction, GoesOnAtTheNextPlaceAheadRatherThanAtOneBehindOrAfterThat) {
  Begin({7, 8, 20, 7, 8, 30, 5, 7, 8, 40, 7, 8, 50});
  Commit({7, 8, 20, 7, 8, 30, 99, 7, 8});
  EXPECT_EQ(Draft(1), Tokens{40});
}

TEST_F(Prediction, GoesBackWhereNothingMatchesAhead) {
  Begin({7, 8, 20, 21, 7, 8, 22, 30, 31, 32, 33});
  Commit({7, 8, 20, 21, 7, 8, 22, 30, 31, 99, 7, 8});
  EXPECT_EQ(Draft(2), (Tokens{22, 30}));  // the nearest place behind
}

TEST_F(Prediction, PrefersALongerMatchBehindToAShorterOneAhead) {
  Begin({5, 6, 7, 8, 20, 30, 7, 8, 40});
  Commit({5, 6, 7, 8, 20, 99, 6, 7, 8});
  EXPECT_EQ(Draft(1), Tokens{20});
}

TEST_F(Prediction, SeesNoFurtherBackThanEightTokens) {
  // Nine tokens match at the first place, eight at the second, which is ahead.
  Begin({9, 1, 2, 3, 4, 5, 6, 7, 8, 20, 30, 1, 2, 3, 4, 5, 6, 7, 8, 40});
  Commit({9, 1, 2, 3, 4, 5, 6, 7, 8, 20, 99, 9, 1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(Draft(1), Tokens{40});
}

TEST_F(Prediction, MatchesOutputOnlyNotThePrompt) {
  Begin({10, 11, 12, 13}, {10, 11});
  Commit({12});
  EXPECT_TRUE(Draft(4).empty());
}

TEST_F(Prediction, EvidenceIsHowLongTheOutputHasFollowedIt) {
  Tokens prediction(20);
  std::iota(prediction.begin(), prediction.end(), 10);
  Begin(prediction);
  const auto evidence = [&] { return Proposal(drafter_, 1).evidence; };
  for (const int expected : {0, 0, 1, 1, 2, 2, 2, 2, 3, 3}) {
    EXPECT_EQ(evidence(), expected);
    Commit(Draft(1));
  }
  Commit({99, 15, 16, 17});
  EXPECT_EQ(evidence(), 1);
}

TEST_F(Prediction, DraftsNothingWithoutOne) {
  Begin({});
  EXPECT_TRUE(Draft(4).empty());
  Commit({1, 2, 3});
  EXPECT_TRUE(Draft(4).empty());
}

TEST_F(Prediction, UsesOnlyWhatFitsTheContext) {
  PredictionDrafter drafter(1, 3);
  const Tokens prediction = {10, 11, 12, 13};
  Start(drafter, {1}, {.sampling = {}, .prediction = prediction});
  EXPECT_EQ(Proposal(drafter, 8).length(), 3);
}

// The definition, by scanning.
struct Naive {
  Tokens prediction, output;
  int next = 0;
  bool followed = true;

  void Commit(Token t) {
    output.push_back(t);
    followed = followed && next < static_cast<int>(prediction.size()) &&
               prediction[static_cast<std::size_t>(next)] == t;
    next += followed;
  }
  bool Stands(int n, int end) const {  // whether the output's last n tokens match
    return n <= end && n <= static_cast<int>(output.size()) &&
           std::equal(output.end() - n, output.end(), prediction.begin() + (end - n));
  }
  Tokens Draft(int most) {
    const int size = static_cast<int>(prediction.size()), left = next;
    for (int n = 8; n >= 2 && !followed; --n) {
      for (int end = left + 1; end <= size && !followed; ++end)
        if (Stands(n, end)) followed = true, next = end;
      for (int end = left; end >= 1 && !followed; --end)
        if (Stands(n, end)) followed = true, next = end;
    }
    if (!followed) return {};
    return {prediction.begin() + next, prediction.begin() + std::min(size, next + most)};
  }
};

TEST_F(Prediction, DraftsWhatANaiveScanDrafts) {
  std::mt19937 random(5);
  int n_drafted = 0;
  for (unsigned round = 0; round < 200; ++round) {
    const unsigned alphabet = 2 + round % 12;
    Naive naive;
    for (unsigned i = 0; i < 10 + round % 80; ++i)
      naive.prediction.push_back(static_cast<Token>(random() % alphabet));
    Begin(naive.prediction);
    for (int step = 0; step < 60; ++step) {
      const Tokens expected = naive.Draft(4);
      ASSERT_EQ(Draft(4), expected) << "round " << round << " step " << step;
      n_drafted += static_cast<int>(expected.size());
      // Most tokens are those that were drafted, so that the output follows the prediction for a
      // while.
      Tokens next = random() % 4 != 0 ? expected : Tokens{};
      if (random() % 2 == 0) next.push_back(static_cast<Token>(random() % alphabet));
      Commit(next);
      for (const Token t : next) naive.Commit(t);
    }
  }
  EXPECT_GT(n_drafted, 1000);
}

}  // namespace
}  // namespace foretoken::draft
