// SPDX-License-Identifier: Apache-2.0
#include "verify/synthetic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/dispatch.h"

namespace foretoken::verify {
namespace {

TEST(Synthetic, MapsTheRateToABase) {
  const std::pair<int, double> expected[] = {{1, .5},      {2, .618034}, {3, .691414},
                                             {5, .777307}, {7, .825871}, {10, .868822}};
  for (const auto& [k, base] : expected) EXPECT_NEAR(SyntheticBase(.5, k), base, 1e-6) << k;
}

TEST(Synthetic, MapsTheEndsExactly) {
  for (const int k : {1, 4, 64}) {
    EXPECT_EQ(SyntheticBase(0, k), 0);
    EXPECT_EQ(SyntheticBase(1, k), 1);
  }
}

class SyntheticRounds : public testing::Test {
 protected:
  static constexpr int kVocabulary = 16, kDrafts = 7;
  // Accepted drafts of `rounds` rounds at different positions; checks each verdict's next token.
  static double MeanAccepted(double rate, int rounds) {
    const Synthetic verifier(rate, kDrafts);
    const std::vector<Token> prompt = {1};
    sampling::Sampler sampler(
        {.parameters = {.logit_bias = {}}, .end_tokens = {}, .noise = Noise(7, 1)}, kVocabulary,
        kernels::KernelsFor(kernels::kBestIsa));
    sampler.Begin(prompt, (rounds + 1) * (kDrafts + 1));
    std::vector<float> logits((kDrafts + 1) * kVocabulary), scratch(2 * kVocabulary);
    for (int i = 0; i <= kDrafts; ++i)
      logits[static_cast<std::size_t>(i * kVocabulary + i + 2)] = 9;
    round::Proposal proposal;
    const std::vector<Token> drafts(kDrafts, 15);  // the target never prefers it
    proposal.tokens = drafts;
    double sum = 0;
    for (int r = 0; r < rounds; ++r) {
      const auto verdict =
          verifier.Judge(proposal, {logits.data(), kVocabulary}, sampler, scratch.data());
      EXPECT_EQ(verdict.next, verdict.accepted + 2);
      sum += verdict.accepted;
      // To positions with draws of their own.
      for (int i = 0; i <= kDrafts; ++i) sampler.Push(0);
    }
    return sum / rounds;
  }
};

TEST_F(SyntheticRounds, AcceptAtTheRateAskedFor) {
  // A round's number deviates by 2.8 at most, so 0.07 is five standard errors.
  for (const double rate : {.1, .4286, .8})
    EXPECT_NEAR(MeanAccepted(rate, 40000), rate * kDrafts, 0.07) << rate;
}

TEST_F(SyntheticRounds, AcceptAllOrNothingAtTheEnds) {
  EXPECT_EQ(MeanAccepted(0, 100), 0);
  EXPECT_EQ(MeanAccepted(1, 100), kDrafts);
}

}  // namespace
}  // namespace foretoken::verify
