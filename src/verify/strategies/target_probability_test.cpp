// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/target_probability.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "verify/rounds_testing.h"

namespace foretoken::verify {
namespace {

constexpr int kTargetVocabulary = 1024;
constexpr double kTargetBound = 30;

Experiment TargetExperiment(const Drafts& drafts) {
  return {.parameters = SamplingParameters{},
          .logits = sampling::LogitsOf(HeadAndTail(kTargetVocabulary)),
          .drafts = drafts};
}

TEST(TargetProbabilityVerifier, AcceptsADraftAsOftenAsTheTargetWouldSayIt) {
  const auto tally =
      Play(TargetExperiment(UniformOverHead(kTargetVocabulary)), VerifyOf(TargetProbability()));
  const double mean = (.28 + .20 + .13 + .10 + .07) / 5;
  EXPECT_NEAR(static_cast<double>(tally.accepted) / 40000, mean,
              4 * std::sqrt(mean * (1 - mean) / 40000));
}

// Given a rejection, x replaces draft d with p(x) / (1 - p(d)), and d was rejected with 1 - p(d).
TEST(TargetProbabilityVerifier, RecoversFromAllButTheDraft) {
  const auto p = HeadAndTail(kTargetVocabulary);
  for (const auto& drafts :
       {UniformOverHead(kTargetVocabulary), FarFromTheTarget(kTargetVocabulary)}) {
    std::vector<double> distribution(p.size());
    double sum = 0;
    for (std::size_t x = 0; x < p.size(); ++x)
      sum += distribution[x] = p[x] * (1 - static_cast<double>(drafts.q[x]));
    for (double& x : distribution) x /= sum;
    const auto tally = Play(TargetExperiment(drafts), VerifyOf(TargetProbability()));
    const double chi = sampling::ChiSquare(tally.recovered, Buckets(distribution));
    std::printf("  chi-square %6.2f  target-probability, recovered\n", chi);
    EXPECT_LT(chi, kTargetBound);
  }
}

TEST(TargetProbabilityVerifier, NeedsNoDistributionOfTheDrafter) {
  const auto row = sampling::LogitsOf({.5, .3, .2});
  for (std::uint64_t id = 0; id < 200; ++id) {
    auto sampler = SamplerOf(3, {}, Noise(1, id));
    const auto with = VerifyOnce(TargetProbability(), {1, 0}, {row, row, row},
                                 {{.1f, .8f, .1f}, {.9f, .05f, .05f}}, sampler);
    const auto without = VerifyOnce(TargetProbability(), {1, 0}, {row, row, row}, {}, sampler);
    EXPECT_EQ(with.accepted, without.accepted);
    EXPECT_EQ(with.next, without.next);
  }
}

TEST(TargetProbabilityVerifier, AlwaysAcceptsTheOnlyTokenThereIs) {
  const Experiment e{.parameters = SamplingParameters{},
                     .logits = sampling::LogitsOf({1, 0, 0, 0, 0, 0}),
                     .drafts = {{1, 0, 0, 0, 0, 0}},
                     .n_drafts = 3,
                     .rounds = 2000};
  EXPECT_EQ(Play(e, VerifyOf(TargetProbability())).accepted, 6000);
}

// The typical mistake of this rule: recovery from all of p.
TEST(TargetProbabilityVerifier, TheTestOfItsDistributionSeesRecoveryFromTheFullDistribution) {
  const auto biased = [](const round::Proposal& proposal, LogitsView l, sampling::Sampler& s,
                         float* p) {
    s.Distribution(l.Row(0), p);
    const Token d = proposal.length() > 0 ? proposal.tokens[0] : 0;
    const bool accept = proposal.length() > 0 &&
                        s.noise().Uniform(Stream::kCoin, s.position()) < static_cast<double>(p[d]);
    if (!accept)
      return round::Verdict{0, s.Draw(p, s.noise().Uniform(Stream::kResidual, s.position())),
                            round::NextKind::kRecovered};
    s.Push(d);
    const Token next = s.Sample(l.Row(1), p);
    s.Pop(1);
    return round::Verdict{1, next, round::NextKind::kBonus};
  };
  for (const auto& [name, drafts] : {std::pair{"uniform", UniformOverHead(kTargetVocabulary)},
                                     {"peaked", PeakedAtTwo(kTargetVocabulary)},
                                     {"certain", Drafts{}}}) {
    const auto distribution = Buckets(HeadAndTail(kTargetVocabulary));
    const double wrong =
        sampling::ChiSquare(Play(TargetExperiment(drafts), biased).committed[0], distribution);
    const double right = sampling::ChiSquare(
        Play(TargetExperiment(drafts), VerifyOf(TargetProbability())).committed[0], distribution);
    std::printf("  chi-square %6.1f  recovery from all of p; %.2f without the draft; %s\n", wrong,
                right, name);
    EXPECT_GT(wrong, 5 * kTargetBound) << name;
    EXPECT_LT(right, kTargetBound) << name;
  }
}

}  // namespace
}  // namespace foretoken::verify
