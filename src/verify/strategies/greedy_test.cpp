// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/greedy.h"

#include <gtest/gtest.h>

#include "verify/rounds_testing.h"

namespace foretoken::verify {
namespace {

sampling::Sampler GreedySampler(const SamplingParameters& s, std::vector<Token> ends = {},
                                int min_new_tokens = 0) {
  sampling::Sampler sampler({.parameters = s,
                             .end_tokens = std::move(ends),
                             .min_new_tokens = min_new_tokens,
                             .noise = {}},
                            4, sampling::BestKernels());
  sampler.Begin(std::vector<Token>{0}, 8);
  return sampler;
}

TEST(GreedyVerifier, VerifiesEachRowWithTheDraftsBeforeItInTheText) {
  // Token 1 leads by .5; once it occurs, a presence penalty of 1 reverses that.
  auto sampler = GreedySampler({.temperature = 0, .presence_penalty = 1.0f, .logit_bias = {}});
  const std::vector<float> row = {0, 2.5f, 2, 0};
  EXPECT_EQ(VerifyOnce(Greedy(), {1, 2}, {row, row, row}, {}, sampler).accepted, 2);
  const auto repeated = VerifyOnce(Greedy(), {1, 1}, {row, row, row}, {}, sampler);
  EXPECT_EQ(repeated.accepted, 1);
  EXPECT_EQ(repeated.next, 2);
}

TEST(GreedyVerifier, RejectsAnEndTokenThatIsStillMasked) {
  auto sampler = GreedySampler({.temperature = 0, .logit_bias = {}}, {3}, 2);
  const std::vector<float> row = {0, 1, 0, 9};
  const auto early = VerifyOnce(Greedy(), {3}, {row, row}, {}, sampler);
  EXPECT_EQ(early.accepted, 0);
  EXPECT_EQ(early.next, 1);
  const auto late = VerifyOnce(Greedy(), {1, 1, 3}, {row, row, row, row}, {}, sampler);
  EXPECT_EQ(late.accepted, 3);
}

TEST(GreedyVerifier, FollowsTheArgmaxAtAnyTemperature) {
  auto sampler = GreedySampler({.temperature = 1.5f, .logit_bias = {}});
  const std::vector<float> row = {0, 0.1f, 0, 0};
  const auto verdict = VerifyOnce(Greedy(), {1, 2}, {row, row, row}, {}, sampler);
  EXPECT_EQ(verdict.accepted, 1);
  EXPECT_EQ(verdict.next, 1);
}

}  // namespace
}  // namespace foretoken::verify
