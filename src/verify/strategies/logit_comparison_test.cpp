// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/logit_comparison.h"

#include <gtest/gtest.h>

#include "verify/rounds_testing.h"

namespace foretoken::verify {
namespace {

const std::vector<float> kRow = {1.0f, 3.0f, 2.0f, -sampling::kInf};

int AcceptedByLogit(Token d, float draft_logit, const SamplingParameters& s = {}) {
  auto sampler = SamplerOf(4, s);
  return VerifyOnce(LogitComparison(), {d}, {kRow, kRow}, {}, sampler, {draft_logit}).accepted;
}

TEST(LogitComparisonVerifier, AcceptsWhereTheTargetsLogitIsNotBelowTheDrafters) {
  EXPECT_EQ(AcceptedByLogit(2, 1.5f), 1);
  EXPECT_EQ(AcceptedByLogit(2, 2.0f), 1);
  EXPECT_EQ(AcceptedByLogit(2, 2.000005f), 1);  // within 1e-5
  EXPECT_EQ(AcceptedByLogit(2, 2.00002f), 0);
  EXPECT_EQ(AcceptedByLogit(0, 1.5f), 0);
}

TEST(LogitComparisonVerifier, ComparesRawLogits) {
  // Processed, token 2 would have 2 / .5 + 9, and token 1, which occurred, less than before.
  const SamplingParameters s{
      .temperature = 0.5f, .presence_penalty = 2, .dry = DryPenalty(), .logit_bias = {{2, 9.0f}}};
  EXPECT_EQ(AcceptedByLogit(2, 2.5f, s), 0);
  auto sampler = SamplerOf(4, s);
  const auto verdict =
      VerifyOnce(LogitComparison(), {1, 1}, {kRow, kRow, kRow}, {}, sampler, {3, 3});
  EXPECT_EQ(verdict.accepted, 2);
}

TEST(LogitComparisonVerifier, SaysTheArgmaxInPlaceOfARejectedDraft) {
  auto sampler = SamplerOf(4);
  const auto verdict =
      VerifyOnce(LogitComparison(), {1, 2, 0}, {kRow, kRow, kRow, kRow}, {}, sampler, {0, 5, 0});
  EXPECT_EQ(verdict.accepted, 1);
  EXPECT_EQ(verdict.next, 1);
  EXPECT_EQ(verdict.kind, round::NextKind::kRecovered);
}

TEST(LogitComparisonVerifier, RejectsWhatCannotBeCompared) {
  EXPECT_EQ(AcceptedByLogit(3, -sampling::kInf), 0);
  EXPECT_EQ(AcceptedByLogit(1, sampling::kNan), 0);
  auto sampler = SamplerOf(4);
  EXPECT_EQ(VerifyOnce(LogitComparison(), {1}, {kRow, kRow}, {}, sampler).accepted, 0);
  EXPECT_TRUE(LogitComparison().NeedsLogits());
}

}  // namespace
}  // namespace foretoken::verify
