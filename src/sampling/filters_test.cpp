// SPDX-License-Identifier: Apache-2.0
#include "sampling/filters.h"

#include <gtest/gtest.h>

#include <cstring>

#include "sampling/distribution_testing.h"

namespace foretoken::sampling {
namespace {

std::vector<float> FilteredDistribution(const std::vector<float>& x, const SamplingParameters& s,
                                        const kernels::Kernels& kernels = BestKernels()) {
  Filters filters(s, static_cast<int>(x.size()), kernels);
  std::vector<float> p(x.size(), kNan);
  filters.Apply(x.data(), p.data());
  return p;
}

std::vector<Token> Kept(const std::vector<float>& p) {
  std::vector<Token> kept;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) kept.push_back(static_cast<Token>(i));
  return kept;
}

using Tokens = std::vector<Token>;

std::vector<SamplingParameters> ManyParameters() {
  std::vector<SamplingParameters> all;
  for (const float t : {0.3f, 1.0f, 1.7f})
    for (const int k : {0, 1, 3, 40, 700})
      for (const float top_p : {0.0f, 0.5f, 0.95f, 1.0f})
        for (const float typical : {0.6f, 1.0f})
          for (const float min_p : {0.0f, 0.05f})
            for (const float eta : {0.0f, 0.002f})
              all.push_back({.temperature = t,
                             .top_k = k,
                             .top_p = top_p,
                             .min_p = min_p,
                             .typical_p = typical,
                             .eta = eta,
                             .logit_bias = {}});
  return all;
}

TEST(Filters, GiveTheDistributionThatTheDefinitionGives) {
  for (const int n : {1, 5, 64, 1000, 4099}) {
    const auto x = RandomLogits(n, static_cast<std::uint32_t>(n));
    for (const auto& s : ManyParameters()) {
      const auto p = FilteredDistribution(x, s);
      const auto expected = ReferenceDistribution(x, s);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const bool kept = expected[i] > 0;
        ASSERT_EQ(p[i] > 0, kept) << "n " << n << " T " << s.temperature << " k " << s.top_k
                                  << " top_p " << s.top_p << " typical " << s.typical_p << " token "
                                  << i;
        ASSERT_NEAR(static_cast<double>(p[i]), expected[i], 1e-6 + 1e-5 * expected[i]);
      }
    }
  }
}

TEST(Filters, GiveTheSameBitsOnEveryInstructionSet) {
  auto x = RandomLogits(4099, 7);
  x[13] = -kInf, x[14] = kNan, x[15] = -0.0f, x[16] = 0.0f, x[4098] = -1e30f;
  const auto& scalar = kernels::KernelsFor(kernels::Isa::kScalar);
  for (const auto isa : kernels::AvailableIsas())
    for (const auto& s : ManyParameters()) {
      const auto p = FilteredDistribution(x, s, kernels::KernelsFor(isa)),
                 expected = FilteredDistribution(x, s, scalar);
      ASSERT_EQ(std::memcmp(p.data(), expected.data(), p.size() * sizeof(float)), 0)
          << kernels::Name(isa);
    }
}

TEST(Filters, TopKKeepsExactlyKAndOfTiesTheLowestIds) {
  const std::vector<float> equal(300, 0.25f);
  for (const int k :
       {1, 3, 5, 6, 40, 299}) {  // 300 tokens are 5 blocks: both ways to find a threshold
    const auto p = FilteredDistribution(equal, {.top_k = k, .logit_bias = {}});
    Tokens expected(static_cast<std::size_t>(k));
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(Kept(p), expected);
    EXPECT_FLOAT_EQ(p[0], 1.0f / static_cast<float>(k));
  }
  EXPECT_EQ(Kept(FilteredDistribution({1, -0.0f, 0, 1, 0}, {.top_k = 3, .logit_bias = {}})),
            (Tokens{0, 1, 3}));  // zeros are equal
}

TEST(Filters, TopKNeverKeepsATokenOfMinusInfinity) {
  EXPECT_EQ(Kept(FilteredDistribution({-kInf, 1, -kInf, 2, kNan}, {.top_k = 4, .logit_bias = {}})),
            (Tokens{1, 3}));
}

TEST(Filters, TopPKeepsATokenWhileTheBetterOnesHoldAtMostP) {
  const std::vector<float> equal(4, 0.0f);  // weights of exactly 1, a sum of 4
  EXPECT_EQ(Kept(FilteredDistribution(equal, {.top_p = 0.0f, .logit_bias = {}})), (Tokens{0}));
  EXPECT_EQ(Kept(FilteredDistribution(equal, {.top_p = 0.49f, .logit_bias = {}})), (Tokens{0, 1}));
  EXPECT_EQ(Kept(FilteredDistribution(equal, {.top_p = 0.5f, .logit_bias = {}})),
            (Tokens{0, 1, 2}));
  const auto x = LogitsOf({.049, .85, .001, .10});
  EXPECT_EQ(Kept(FilteredDistribution(x, {.top_p = 0.5f, .logit_bias = {}})), (Tokens{1}));
  EXPECT_EQ(Kept(FilteredDistribution(x, {.top_p = 0.9f, .logit_bias = {}})), (Tokens{1, 3}));
}

TEST(Filters, TopPIsTakenOfTheDistributionThatTopKLeft) {
  const auto x = LogitsOf({.4, .3, .2, .1});
  EXPECT_EQ(Kept(FilteredDistribution(x, {.top_k = 0, .top_p = 0.5f, .logit_bias = {}})),
            (Tokens{0, 1}));
  EXPECT_EQ(Kept(FilteredDistribution(x, {.top_k = 2, .top_p = 0.5f, .logit_bias = {}})),
            (Tokens{0}));  // .4 / .7 is beyond .5
}

TEST(Filters, MinPComparesWithTheBestOfTheDistribution) {
  const auto x = LogitsOf({.5, .3, .15, .05});
  EXPECT_EQ(Kept(FilteredDistribution(x, {.min_p = 0.25f, .logit_bias = {}})), (Tokens{0, 1, 2}));
  EXPECT_EQ(Kept(FilteredDistribution(x, {.min_p = 1.0f, .logit_bias = {}})), (Tokens{0}));
}

TEST(Filters, TypicalPPrefersTokensNearTheEntropy) {
  // Entropy 1.44 nats; surprises .69, 2.30, 2.30, 1.61, 2.30: token 3 is the nearest.
  const auto x = LogitsOf({.5, .1, .1, .2, .1});
  EXPECT_EQ(Kept(FilteredDistribution(x, {.typical_p = 0.1f, .logit_bias = {}})), (Tokens{3}));
  EXPECT_EQ(Kept(FilteredDistribution(x, {.typical_p = 0.5f, .logit_bias = {}})), (Tokens{0, 3}));
}

TEST(Filters, EtaKeepsWhatTheSmallerOfItsTwoThresholdsKeeps) {
  // Entropy 0.94 nats: sqrt(.2) exp(-.94) = .175 is below .2; sqrt(.01) exp(-.94) = .039 above .01.
  const auto x = LogitsOf({.6, .18, .18, .04});
  EXPECT_EQ(Kept(FilteredDistribution(x, {.eta = 0.2f, .logit_bias = {}})), (Tokens{0, 1, 2}));
  EXPECT_EQ(Kept(FilteredDistribution(x, {.eta = 0.01f, .logit_bias = {}})), (Tokens{0, 1, 2, 3}));
  // In a flat distribution the second threshold falls below every probability; in a peaked one it
  // does not.
  EXPECT_EQ(
      Kept(FilteredDistribution(std::vector<float>(100, 0.0f), {.eta = 0.1f, .logit_bias = {}}))
          .size(),
      100u);
  EXPECT_EQ(Kept(FilteredDistribution(LogitsOf({.97, .02, .01}), {.eta = 0.1f, .logit_bias = {}})),
            (Tokens{0}));
}

TEST(Filters, EtaAlwaysKeepsTheBest) {
  const std::vector<float> equal(3, 0.0f);
  EXPECT_EQ(Kept(FilteredDistribution(equal, {.eta = 0.99f, .logit_bias = {}})), (Tokens{0, 1, 2}));
  const auto x = LogitsOf({.3, .4, .3});
  EXPECT_EQ(Kept(FilteredDistribution(x, {.eta = 0.9999f, .logit_bias = {}})), (Tokens{1}));
  EXPECT_EQ(Kept(FilteredDistribution(x, {.top_k = 2, .eta = 0.9999f, .logit_bias = {}})),
            (Tokens{1}));
}

TEST(Filters, EtaIsTakenOfTheDistributionThatMinPLeft) {
  // min-p turns (.4, .4, and .2 on small ones) into (.5, .5). Its entropy is ln 2, so an eta of .35
  // gives the threshold .275.
  std::vector<double> p(22, 0.01);
  p[0] = p[1] = 0.4;
  const auto x = LogitsOf(p);
  EXPECT_EQ(Kept(FilteredDistribution(x, {.min_p = 0.5f, .eta = 0.35f, .logit_bias = {}})),
            (Tokens{0, 1}));
  EXPECT_EQ(Kept(FilteredDistribution(x, {.eta = 1e-4f, .logit_bias = {}})).size(), 22u);
}

TEST(Filters, NanIsNeverKept) {
  for (const auto& s : {SamplingParameters{}, SamplingParameters{.top_p = 0.9f, .logit_bias = {}},
                        SamplingParameters{.eta = 0.1f, .logit_bias = {}},
                        SamplingParameters{.top_k = 2, .logit_bias = {}}}) {
    const auto p = FilteredDistribution({kNan, 1, kNan, 1, -kInf}, s);
    EXPECT_EQ(Kept(p), (Tokens{1, 3}));
    EXPECT_FLOAT_EQ(p[1], 0.5f);
    EXPECT_EQ(p[0], 0.0f);
  }
}

TEST(Filters, MayWorkInPlace) {
  const auto x = RandomLogits(1000, 5);
  for (const auto& s : ManyParameters()) {
    auto p = x;
    Filters(s, 1000, BestKernels()).Apply(p.data(), p.data());
    ASSERT_EQ(p, FilteredDistribution(x, s));
  }
}

}  // namespace
}  // namespace foretoken::sampling
