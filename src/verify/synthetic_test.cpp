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

// Rounds of m drafts at different positions.
class SyntheticRounds : public testing::Test {
 protected:
  static constexpr int kVocabulary = 16, kMost = 12, kRounds = 20000;

  struct Counts {
    double accepted = 0, square = 0;  // sums over the rounds
    std::vector<int> reached;         // [i]: rounds that accepted drafts 1 to i
  };
  // Also checks each verdict's next token.
  static Counts Play(double rate, int m, int rounds = kRounds, bool each = false) {
    const Synthetic verifier(rate, each);
    const std::vector<Token> prompt = {1};
    sampling::Sampler sampler(
        {.parameters = {.logit_bias = {}}, .end_tokens = {}, .noise = Noise(7, 1)}, kVocabulary,
        kernels::KernelsFor(kernels::kBestIsa));
    sampler.Begin(prompt, (rounds + 1) * (m + 1));
    std::vector<float> logits((kMost + 1) * kVocabulary), scratch(2 * kVocabulary);
    for (int i = 0; i <= kMost; ++i) logits[static_cast<std::size_t>(i * kVocabulary + i + 2)] = 9;
    round::Proposal proposal;
    const std::vector<Token> drafts(static_cast<std::size_t>(m), 15);  // never the target's own
    proposal.tokens = drafts;
    Counts counts;
    counts.reached.resize(static_cast<std::size_t>(m) + 1);
    for (int r = 0; r < rounds; ++r) {
      const auto verdict =
          verifier.Verify(proposal, {logits.data(), kVocabulary}, sampler, scratch.data());
      EXPECT_EQ(verdict.next, verdict.accepted + 2);
      counts.accepted += verdict.accepted;
      counts.square += verdict.accepted * verdict.accepted;
      for (int i = 0; i <= verdict.accepted; ++i) ++counts.reached[static_cast<std::size_t>(i)];
      // Moves to positions with independent random numbers.
      for (int i = 0; i <= m; ++i) sampler.Push(0);
    }
    return counts;
  }
  // The distance of mean accepted / drafted from `rate`, in standard errors.
  static double Off(const Counts& counts, int m, double rate) {
    const double mean = counts.accepted / kRounds, variance = counts.square / kRounds - mean * mean;
    return std::abs(mean - rate * m) / std::sqrt(variance / kRounds);
  }
};

TEST_F(SyntheticRounds, AcceptAtTheRateAskedForAtEveryLength) {
  for (const double rate : {.1, .3, .4286, .8})
    for (const int m : {1, 2, 3, 5, 8, kMost})
      EXPECT_LT(Off(Play(rate, m), m, rate), 4.5) << rate << " " << m;
}

// Each draft is accepted with the same probability, given that those before it were accepted.
TEST_F(SyntheticRounds, AcceptEveryPositionAlike) {
  for (const int m : {2, 5, 8}) {
    const Counts counts = Play(.6, m);
    const double base = SyntheticBase(.6, m);
    for (std::size_t i = 1; i < counts.reached.size(); ++i) {
      const double n = counts.reached[i - 1], error = std::sqrt(base * (1 - base) / n);
      EXPECT_NEAR(counts.reached[i] / n, base, 4.5 * error) << m << " " << i;
    }
  }
}

// So a round of m drafts accepts rate + ... + rate^m of them, and not m * rate.
TEST_F(SyntheticRounds, AcceptEachDraftAtTheRateWhateverTheLength) {
  constexpr double kRate = .6;
  for (const int m : {1, 2, 5, 8}) {
    const Counts counts = Play(kRate, m, kRounds, true);
    double mean = 0, power = 1;
    for (int i = 0; i < m; ++i) mean += power *= kRate;
    EXPECT_LT(Off(counts, m, mean / m), 4.5) << m;
    if (m > 1) EXPECT_GT(Off(counts, m, kRate), 20) << m;
  }
}

// The negative control: the base of 8 drafts accepts too many of shorter drafts, and the test
// detects it.
TEST_F(SyntheticRounds, WouldBeSeenToUseTheBaseOfAnotherLength) {
  for (const int m : {1, 2, 3, 5}) {
    double mean = 0, power = 1;
    for (int i = 0; i < m; ++i) mean += power *= SyntheticBase(.3, 8);
    EXPECT_GT(Off(Play(.3, m), m, mean / m), 20) << m;
  }
}

TEST_F(SyntheticRounds, AcceptAllOrNothingAtTheEnds) {
  EXPECT_EQ(Play(0, 7, 100).accepted, 0);
  EXPECT_EQ(Play(1, 7, 100).accepted, 700);
}

}  // namespace
}  // namespace foretoken::verify
