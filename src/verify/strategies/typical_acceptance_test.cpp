// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/typical_acceptance.h"

#include <gtest/gtest.h>

#include "verify/rounds_testing.h"

namespace foretoken::verify {
namespace {

// The drafts that a rule accepts under this distribution.
std::vector<Token> AcceptedTypical(const Verifier& verifier, const std::vector<double>& p,
                                   const SamplingParameters& s = {}) {
  auto sampler = SamplerOf(static_cast<int>(p.size()), s, Noise(3, 0));
  const auto row = sampling::LogitsOf(p);
  std::vector<Token> accepted;
  for (Token d = 0; d < static_cast<Token>(p.size()); ++d)
    if (VerifyOnce(verifier, {d}, {row, row}, {}, sampler).accepted == 1) accepted.push_back(d);
  return accepted;
}

TEST(TypicalAcceptanceVerifier, AsksMoreOfADraftWhereTheDistributionIsSharp) {
  const TypicalAcceptance verifier;
  // H = 1.459, .3 exp(-H) = .0698 < .09.
  EXPECT_EQ(AcceptedTypical(verifier, {.4, .3, .14, .0725, .0625, .025}),
            (std::vector<Token>{0, 1, 2, 3}));
  // H = .168, .3 exp(-H) = .25 > .09.
  EXPECT_EQ(AcceptedTypical(verifier, {.88, .095, .015, .01}), (std::vector<Token>{0, 1}));
  EXPECT_EQ(AcceptedTypical(verifier, {.88, .085, .025, .01}), (std::vector<Token>{0}));
  // Flat: 1 / 16 > .3 / 16.
  EXPECT_EQ(AcceptedTypical(verifier, std::vector<double>(16, 1.0 / 16)).size(), 16U);
}

TEST(TypicalAcceptanceVerifier, TakesItsTwoNumbersFromTheSettings) {
  const std::vector<double> p = {.5, .3, .15, .05};  // exp(-H) = .3188
  EXPECT_EQ(AcceptedTypical(TypicalAcceptance({.typical_epsilon = 0.4f, .typical_delta = 1}), p),
            (std::vector<Token>{0}));
  EXPECT_EQ(AcceptedTypical(TypicalAcceptance({.typical_epsilon = 1, .typical_delta = 0.9f}), p),
            (std::vector<Token>{0, 1}));
  EXPECT_EQ(
      AcceptedTypical(TypicalAcceptance({.typical_epsilon = 0, .typical_delta = 1}), p).size(), 4U);
  EXPECT_EQ(AcceptedTypical(TypicalAcceptance({.typical_epsilon = 1, .typical_delta = 1}),
                            {.26, .25, .25, .24}),  // exp(-H) = .2501
            (std::vector<Token>{0}));
}

TEST(TypicalAcceptanceVerifier, LooksAtTheProcessedDistribution) {
  // Sharpened, (.5, .3, .15, .05) is (.67, .24, .06, .01).
  const std::vector<double> p = {.5, .3, .15, .05};
  EXPECT_EQ(AcceptedTypical(TypicalAcceptance(), p), (std::vector<Token>{0, 1, 2}));
  EXPECT_EQ(AcceptedTypical(TypicalAcceptance(), p, {.temperature = 0.5f, .logit_bias = {}}),
            (std::vector<Token>{0, 1}));
  EXPECT_EQ(AcceptedTypical(TypicalAcceptance(), p, {.top_k = 1, .logit_bias = {}}),
            (std::vector<Token>{0}));
}

TEST(TypicalAcceptanceVerifier, SaysWhatPlainDecodingWouldInPlaceOfARejectedDraft) {
  const auto row = sampling::LogitsOf({.5, .3, .15, .05});
  std::vector<float> distribution(4);
  for (std::uint64_t id = 0; id < 100; ++id) {
    auto sampler = SamplerOf(4, {}, Noise(3, id));
    const auto verdict = VerifyOnce(TypicalAcceptance(), {3}, {row, row}, {}, sampler);
    EXPECT_EQ(verdict.accepted, 0);
    EXPECT_EQ(verdict.next, sampler.Sample(row.data(), distribution.data()));
  }
}

// It is not lossless: accepted drafts are committed as often as they are drafted.
TEST(TypicalAcceptanceVerifier, BendsTheDistribution) {
  const Experiment e{.parameters = SamplingParameters{},
                     .logits = sampling::LogitsOf({.4, .2, .2, .1, .05, .05}),
                     .drafts = {{0, 0, 1, 0, 0, 0}}};
  EXPECT_EQ(Play(e, VerifyOf(TypicalAcceptance())).committed[0][2], e.rounds);
}

}  // namespace
}  // namespace foretoken::verify
