// SPDX-License-Identifier: Apache-2.0
#include "sampling/penalties.h"

#include <gtest/gtest.h>

#include "sampling/distribution_testing.h"

namespace foretoken::sampling {
namespace {

std::vector<float> Edited(Penalties& penalties, const std::vector<Token>& text,
                          std::vector<float> x) {
  penalties.Apply(text, x.data());
  return x;
}

TEST(Penalties, EqualTheDefinitionAfterAnyPushesAndPops) {
  constexpr int kVocabulary = 12;
  std::mt19937 random(5);
  for (const int window : {-1, 0, 1, 4, 1000}) {
    const SamplingParameters s{.repetition_penalty = 1.3f,
                               .repetition_window = window,
                               .frequency_penalty = 0.2f,
                               .presence_penalty = -0.4f,
                               .logit_bias = {}};
    Penalties penalties(s, kVocabulary);
    std::vector<Token> text = {3, 3, 11, 0};
    const int n_prompt = static_cast<int>(text.size());
    penalties.Begin(text, 60);
    for (int step = 0; step < 400; ++step) {
      const bool push =
          text.size() < 64 && (random() % 3 != 0 || static_cast<int>(text.size()) == n_prompt);
      if (push) {
        text.push_back(static_cast<Token>(random() % kVocabulary));
        penalties.Push(text.back());
      } else {
        penalties.Pop(text.back());
        text.pop_back();
      }
      const auto x = RandomLogits(kVocabulary, static_cast<std::uint32_t>(random()));
      ASSERT_EQ(Edited(penalties, text, x), ReferenceEdits(x, s, text, n_prompt, {}))
          << "window " << window << " step " << step;
    }
  }
}

TEST(Penalties, RepetitionCountsThePromptAndTheOthersDoNot) {
  const std::vector<Token> prompt = {1};
  const std::vector<float> x = {2, 2, -2};
  Penalties repetition({.repetition_penalty = 2.0f, .logit_bias = {}}, 3);
  repetition.Begin(prompt, 1);
  EXPECT_EQ(Edited(repetition, prompt, x), (std::vector<float>{2, 1, -2}));
  Penalties others({.frequency_penalty = 1.0f, .presence_penalty = 1.0f, .logit_bias = {}}, 3);
  others.Begin(prompt, 1);
  EXPECT_EQ(Edited(others, prompt, x), x);
}

TEST(Penalties, IgnoreTokensBeyondTheVocabulary) {
  const std::vector<Token> prompt = {7, -1, 1};
  Penalties penalties({.repetition_penalty = 2.0f, .logit_bias = {}}, 3);
  penalties.Begin(prompt, 2);
  penalties.Push(99);
  const std::vector<Token> text = {7, -1, 1, 99};
  EXPECT_EQ(Edited(penalties, text, {2, 2, 2}), (std::vector<float>{2, 1, 2}));
  penalties.Pop(99);
  EXPECT_EQ(Edited(penalties, prompt, {2, 2, 2}), (std::vector<float>{2, 1, 2}));
}

}  // namespace
}  // namespace foretoken::sampling
