// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/relaxed.h"

#include <gtest/gtest.h>

#include "verify/rounds_testing.h"

namespace foretoken::verify {
namespace {

std::vector<Token> AcceptedRelaxed(const Verifier& verifier, const std::vector<double>& p,
                                   const SamplingParameters& s = {}) {
  auto sampler = SamplerOf(static_cast<int>(p.size()), s);
  const auto row = sampling::LogitsOf(p);
  std::vector<Token> accepted;
  for (Token d = 0; d < static_cast<Token>(p.size()); ++d) {
    const auto verdict = VerifyOnce(verifier, {d}, {row, row}, {}, sampler);
    if (verdict.accepted == 1)
      accepted.push_back(d);
    else
      EXPECT_EQ(verdict.next, sampler.Argmax(row.data()));
  }
  return accepted;
}

TEST(RelaxedVerifier, AcceptsTheTopTokensWithinDeltaOfTheBest) {
  EXPECT_EQ(AcceptedRelaxed(Relaxed({.relaxed_top_n = 3, .relaxed_delta = 1}), {.1, .4, .2, .3}),
            (std::vector<Token>{1, 2, 3}));
  EXPECT_EQ(
      AcceptedRelaxed(Relaxed({.relaxed_top_n = 4, .relaxed_delta = 0.15f}), {.1, .4, .2, .3}),
      (std::vector<Token>{1, 3}));
  EXPECT_EQ(AcceptedRelaxed(Relaxed({.relaxed_top_n = 1, .relaxed_delta = 1}), {.1, .4, .2, .3}),
            (std::vector<Token>{1}));
}

TEST(RelaxedVerifier, TakesTheLowestOfEqualTokens) {
  EXPECT_EQ(
      AcceptedRelaxed(Relaxed({.relaxed_top_n = 2, .relaxed_delta = 1}), {.2, .2, .2, .2, .2}),
      (std::vector<Token>{0, 1}));
  EXPECT_EQ(
      AcceptedRelaxed(Relaxed({.relaxed_top_n = 3, .relaxed_delta = 1}), {.1, .2, .2, .3, .2}),
      (std::vector<Token>{1, 2, 3}));
}

TEST(RelaxedVerifier, HasTenTokensAndSixTenthsAsDefaults) {
  std::vector<double> p(20, .01);
  p[0] = .81;
  EXPECT_EQ(AcceptedRelaxed(Relaxed(), p), (std::vector<Token>{0}));  // .01 < .81 - .6
  p.assign(20, .05);
  EXPECT_EQ(AcceptedRelaxed(Relaxed(), p).size(), 10U);
}

TEST(RelaxedVerifier, NeverAcceptsWhatTheRequestRulesOut) {
  EXPECT_EQ(AcceptedRelaxed(Relaxed(), {.4, .3, .2, .1}, {.top_k = 2, .logit_bias = {}}),
            (std::vector<Token>{0, 1}));
}

}  // namespace
}  // namespace foretoken::verify
