// SPDX-License-Identifier: Apache-2.0
#include "sampling/dry.h"

#include <gtest/gtest.h>

#include "sampling/distribution_testing.h"

namespace foretoken::sampling {
namespace {

// The penalty of each token of the vocabulary.
std::vector<float> Losses(const DryPenalty& penalty, const std::vector<Token>& text,
                          int vocabulary = 10) {
  Dry dry(penalty, vocabulary);
  dry.Begin(text.size());
  std::vector<float> x(static_cast<std::size_t>(vocabulary), 0.0f);
  dry.Apply(text, x.data());
  for (float& v : x) v = 0.0f - v;
  return x;
}

float LossOf(Token token, const DryPenalty& penalty, const std::vector<Token>& text) {
  return Losses(penalty, text)[static_cast<std::size_t>(token)];
}

TEST(Dry, PunishesWhatProlongsARepetition) {
  const DryPenalty dry = {.multiplier = 0.5f, .base = 2.0f, .allowed_length = 2};
  EXPECT_EQ(LossOf(4, dry, {1, 2, 3, 4, 9, 3}), 0.0f);        // one token repeated: allowed
  EXPECT_EQ(LossOf(4, dry, {1, 2, 3, 4, 9, 2, 3}), 0.5f);     // two
  EXPECT_EQ(LossOf(4, dry, {1, 2, 3, 4, 9, 1, 2, 3}), 1.0f);  // three: times the base
  EXPECT_EQ(LossOf(5, dry, {1, 2, 3, 4, 9, 1, 2, 3}), 0.0f);  // another continuation
  EXPECT_EQ(LossOf(7, dry, {7, 7, 7, 7, 7}), 0.5f * 4.0f);    // it may overlap itself
}

TEST(Dry, PunishesForTheLongestOfSeveralRepetitions) {
  const DryPenalty dry = {.multiplier = 1.0f, .base = 2.0f, .allowed_length = 1};
  EXPECT_EQ(LossOf(4, dry, {3, 4, 2, 3, 4, 8, 3, 4, 2, 3}), 8.0f);  // four, twice one
  EXPECT_EQ(LossOf(8, dry, {3, 4, 8, 2, 3, 4}), 2.0f);
}

TEST(Dry, NoRepetitionReachesAcrossABreaker) {
  DryPenalty dry = {.multiplier = 1.0f, .base = 2.0f, .allowed_length = 1};
  const std::vector<Token> text = {1, 0, 2, 3, 9, 1, 0, 2};
  EXPECT_EQ(LossOf(3, dry, text), 4.0f);
  dry.breakers = {0};
  EXPECT_EQ(LossOf(3, dry, text), 1.0f);
  EXPECT_EQ(LossOf(5, dry, {0, 5, 0}), 0.0f);  // the last token is one
  EXPECT_EQ(LossOf(0, dry, {1, 0, 1}), 0.0f);  // a breaker itself is free
}

TEST(Dry, LooksAtTheLastTokensOnly) {
  DryPenalty dry = {.multiplier = 1.0f, .base = 2.0f, .allowed_length = 1, .window = 4};
  EXPECT_EQ(LossOf(2, dry, {1, 2, 5, 6, 1}), 0.0f);
  EXPECT_EQ(LossOf(2, dry, {1, 2, 6, 1}), 1.0f);
  dry.window = 0;
  EXPECT_EQ(LossOf(2, dry, {1, 2, 6, 1}), 0.0f);
}

TEST(Dry, StaysFiniteAndIgnoresTokensBeyondTheVocabulary) {
  const std::vector<Token> text(5000, 3);
  const DryPenalty dry = {.multiplier = 1.0f, .base = 4.0f};
  EXPECT_EQ(LossOf(3, dry, text), std::numeric_limits<float>::max());
  EXPECT_EQ(Losses(dry, {-1, 77, -1, 77, -1, 77}), std::vector<float>(10, 0.0f));
}

TEST(Dry, EqualsTheComparisonOfAllPairs) {
  std::mt19937 random(11);
  int punished = 0;
  for (int round = 0; round < 600; ++round) {
    const int vocabulary = 2 + static_cast<int>(random() % 4);
    std::vector<Token> text(random() % 80);
    for (Token& t : text) t = static_cast<Token>(random() % vocabulary);
    SamplingParameters s;
    s.dry = {.multiplier = 0.3f,
             .base = 1.1f + 0.1f * static_cast<float>(random() % 8),
             .allowed_length = 1 + static_cast<int>(random() % 5),
             .window = static_cast<int>(random() % 90) - 1};
    if (random() % 2 == 0) s.dry.breakers = {static_cast<Token>(random() % vocabulary)};
    Dry dry(s.dry, vocabulary);
    dry.Begin(80);
    for (int again = 0; again < 2; ++again) {  // nothing of the first call remains
      auto x = RandomLogits(vocabulary, static_cast<std::uint32_t>(round));
      const auto expected = ReferenceEdits(x, s, text, 0, {});
      punished += expected != x;
      dry.Apply(text, x.data());
      ASSERT_EQ(x, expected) << "round " << round;
    }
  }
  EXPECT_GT(punished, 300);
}

}  // namespace
}  // namespace foretoken::sampling
