// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/experts/expert_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "kernels/dispatch.h"

namespace foretoken::model {
namespace {

struct ChosenExperts {
  std::vector<std::int32_t> chosen;
  std::vector<float> weights;
};

ChosenExperts Choose(const ExpertsConfig& config, std::vector<float> logits,
                     const std::vector<float>& bias = {},
                     kernels::Isa isa = kernels::Isa::kScalar) {
  const auto used = static_cast<std::size_t>(config.n_used);
  ChosenExperts choice = {std::vector<std::int32_t>(used), std::vector<float>(used)};
  std::vector<float> scores(logits.size());
  ChooseExperts(kernels::KernelsFor(isa), config, logits.data(),
                bias.empty() ? nullptr : bias.data(), scores.data(), choice.chosen.data(),
                choice.weights.data());
  return choice;
}

using Ids = std::vector<std::int32_t>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ExpertChoice, TakesTheLargestAndTheLowestOfEqualOnes) {
  const ExpertsConfig config = {.n_experts = 6, .n_used = 4};
  EXPECT_EQ(Choose(config, {1, 3, 2, 3, 1, 1}).chosen, (Ids{1, 3, 2, 0}));
  EXPECT_EQ(Choose(config, {0, 0, 0, 0, 0, 0}).chosen, (Ids{0, 1, 2, 3}));
}

TEST(ExpertChoice, WeighsBySoftmaxOverAllOrOverTheChosen) {
  const std::vector<float> logits = {0.5f, -1, 2, 0.25f};
  double all = 0;
  for (const float x : logits) all += std::exp(double{x});
  const double two = std::exp(2.0) + std::exp(0.5);
  ChosenExperts c = Choose({.n_experts = 4, .n_used = 2}, logits);
  EXPECT_EQ(c.chosen, (Ids{2, 0}));
  EXPECT_NEAR(c.weights[0], std::exp(2.0) / all, 1e-6);
  EXPECT_NEAR(c.weights[1], std::exp(0.5) / all, 1e-6);
  for (const ExpertsConfig& config :
       {ExpertsConfig{.n_experts = 4, .n_used = 2, .normalised = true, .weights_scale = 1.5f},
        ExpertsConfig{.n_experts = 4,
        .n_used = 2,
        .gating = ExpertGating::kChosenSoftmax,
        .weights_scale = 1.5f}}) {
    c = Choose(config, logits);
    EXPECT_EQ(c.chosen, (Ids{2, 0}));
    EXPECT_NEAR(c.weights[0], 1.5 * std::exp(2.0) / two, 1e-6);
    EXPECT_NEAR(c.weights[1], 1.5 * std::exp(0.5) / two, 1e-6);
  }
}

TEST(ExpertChoice, CountsTheBiasForTheChoiceAlone) {
  const ChosenExperts c = Choose({.n_experts = 3, .n_used = 2, .gating = ExpertGating::kSigmoid},
                                 {0, 1, -1}, {0, -10, 0.5f});
  EXPECT_EQ(c.chosen, (Ids{2, 0}));
  EXPECT_NEAR(c.weights[0], 1 / (1 + std::exp(1.0)), 1e-6);
  EXPECT_NEAR(c.weights[1], 0.5, 1e-6);
}

TEST(ExpertChoice, TakesFromTheBestGroupsOnly) {
  ExpertsConfig config = {.n_experts = 6,
                          .n_used = 2,
                          .gating = ExpertGating::kChosenSoftmax,
                          .n_groups = 3,
                          .n_used_groups = 1};
  // The sums of the groups are 5, 6 and 5.5: the largest expert alone does not win.
  EXPECT_EQ(Choose(config, {5, 0, 3, 3, 4, 1.5f}).chosen, (Ids{2, 3}));
  config.n_used_groups = 2;
  EXPECT_EQ(Choose(config, {5, 0, 3, 3, 4, 1.5f}).chosen, (Ids{4, 2}));
  EXPECT_EQ(Choose(config, {1, 1, 1, 1, 1, 1}).chosen, (Ids{0, 1}));
}

TEST(ExpertChoice, AlwaysTakesDistinctExpertsAndShowsABrokenRow) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ExpertGating gating :
       {ExpertGating::kSoftmax, ExpertGating::kSigmoid, ExpertGating::kChosenSoftmax})
    for (const float bad : {nan, kInfinity, -kInfinity})
      for (const int n_bad : {1, 4, 5}) {
        std::vector<float> logits = {1, 2, 3, 4, 5};
        for (int i = 0; i < n_bad; ++i) logits[static_cast<std::size_t>(4 - i)] = bad;
        const ChosenExperts c =
            Choose({.n_experts = 5, .n_used = 3, .gating = gating, .normalised = true}, logits);
        EXPECT_TRUE(c.chosen[0] != c.chosen[1] && c.chosen[0] != c.chosen[2] &&
                    c.chosen[1] != c.chosen[2]);
        for (const std::int32_t e : c.chosen) EXPECT_TRUE(e >= 0 && e < 5) << e;
        for (const float w : c.weights) EXPECT_TRUE(std::isnan(w));
      }
}

TEST(ExpertChoice, IsTheSameForEveryInstructionSet) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 2);
  for (int i = 0; i < 200; ++i) {
    const int n = 4 + static_cast<int>(random() % 150);
    const ExpertsConfig config = {.n_experts = n,
                                  .n_used = 1 + static_cast<int>(random() % 4),
                                  .gating = static_cast<ExpertGating>(random() % 3),
                                  .normalised = random() % 2 == 0,
                                  .weights_scale = 1.25f};
    std::vector<float> logits(static_cast<std::size_t>(n));
    for (float& x : logits) x = normal(random);
    const ChosenExperts expected = Choose(config, logits);
    for (const kernels::Isa isa : kernels::AvailableIsas()) {
      const ChosenExperts c = Choose(config, logits, {}, isa);
      EXPECT_EQ(c.chosen, expected.chosen) << kernels::Name(isa);
      EXPECT_EQ(
          std::memcmp(c.weights.data(), expected.weights.data(), c.weights.size() * sizeof(float)),
          0)
          << kernels::Name(isa);
    }
  }
}

}  // namespace
}  // namespace foretoken::model
