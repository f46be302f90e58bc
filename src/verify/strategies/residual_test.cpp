// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/residual.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "verify/rounds_testing.h"

namespace foretoken::verify {
namespace {

constexpr int kResidualVocabulary = 1024;
constexpr double kResidualBound = 30;

Experiment ResidualExperiment(Drafts drafts, SamplingParameters s = {}) {
  return {.parameters = std::move(s),
          .logits = sampling::LogitsOf(HeadAndTail(kResidualVocabulary)),
          .drafts = std::move(drafts)};
}

// The distribution of the tokens that replace a rejected draft.
std::vector<double> ResidualDistribution(const std::vector<double>& p,
                                         const std::vector<float>& q) {
  std::vector<double> r(p.size());
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i)
    sum += r[i] = std::max(0.0, p[i] - static_cast<double>(q[i]));
  for (double& x : r) x /= sum;
  return r;
}

TEST(ResidualVerifier, RecoversFromTheResidual) {
  for (const auto& drafts :
       {UniformOverHead(kResidualVocabulary), FarFromTheTarget(kResidualVocabulary)}) {
    const auto e = ResidualExperiment(drafts);
    const auto tally = Play(e, VerifyOf(Residual()));
    const double chi = sampling::ChiSquare(
        tally.recovered, Buckets(ResidualDistribution(HeadAndTail(kResidualVocabulary), drafts.q)));
    std::printf("  chi-square %6.2f  residual, recovered\n", chi);
    EXPECT_LT(chi, kResidualBound);
  }
}

TEST(ResidualVerifier, AcceptsWithTheOverlapOfTheDistributions) {
  const auto drafts = UniformOverHead(kResidualVocabulary);
  const auto tally = Play(ResidualExperiment(drafts), VerifyOf(Residual()));
  const double overlap = .2 + .2 + .13 + .10 + .07;  // sum of min(p, q)
  EXPECT_NEAR(static_cast<double>(tally.accepted) / static_cast<double>(tally.drafted), overlap,
              4 * std::sqrt(overlap * (1 - overlap) / 40000));
}

TEST(ResidualVerifier, AlwaysAcceptsADraftFromTheTargetsOwnDistribution) {
  auto e = ResidualExperiment({Floats(HeadAndTail(kResidualVocabulary))});
  SamplerOf(kResidualVocabulary).Distribution(e.logits.data(), e.drafts.q.data());
  e.n_drafts = 4, e.rounds = 5000;
  EXPECT_EQ(Play(e, VerifyOf(Residual())).accepted, 20000);
}

TEST(ResidualVerifier, NeverAcceptsWhatTheTargetGivesNoProbability) {
  // Token 3 is impossible, but the drafter is almost certain of it. An epsilon in the rule would
  // let it through.
  const Experiment e{.parameters = SamplingParameters{},
                     .logits = sampling::LogitsOf({.5, .3, .2, 0, 0, 0}),
                     .drafts = {{0, 0, 1e-20f, 1, 0, 0}}};
  const auto tally = Play(e, VerifyOf(Residual()));
  EXPECT_EQ(tally.accepted, 0);
  EXPECT_LT(sampling::ChiSquare(tally.committed[0], {.5, .3, .2, 0, 0, 0}), kResidualBound);
}

// p = (.5, .3, .2), certain draft 0: again the distribution of plain decoding, not the (.75, .15,
// .10) of sampling twice.
TEST(ResidualVerifier, DoesNotSampleTwiceForACertainDraft) {
  Experiment e{.parameters = SamplingParameters{},
               .logits = sampling::LogitsOf({.5, .3, .2, 0, 0, 0}),
               .drafts = {{1, 0, 0, 0, 0, 0}}};
  const std::vector<double> p = {.5, .3, .2, 0, 0, 0};
  EXPECT_LT(sampling::ChiSquare(Play(e, VerifyOf(Residual())).committed[0], p), kResidualBound);
  const auto twice = [](const round::Proposal& proposal, LogitsView l, sampling::Sampler& s,
                        float* scratch) {
    if (proposal.length() == 0) return round::Verdict{.next = s.Sample(l.Row(0), scratch)};
    s.Distribution(l.Row(0), scratch);
    const bool match =
        s.Draw(scratch, s.noise().Uniform(Stream::kCoin, s.position())) == proposal.tokens[0];
    const Token again = s.Draw(scratch, s.noise().Uniform(Stream::kResidual, s.position()));
    return match ? round::Verdict{1, again, round::NextKind::kBonus}
                 : round::Verdict{0, again, round::NextKind::kRecovered};
  };
  const auto wrong = Play(e, twice).committed[0];
  EXPECT_GT(sampling::ChiSquare(wrong, p), 100 * kResidualBound);
  EXPECT_LT(sampling::ChiSquare(wrong, {.75, .15, .10, 0, 0, 0}), kResidualBound);
}

// That experiment with a wrong rule: accept with p(d), recover from all of p. It commits p(x)
// (q(x) + 1 - E_q p).
round::Verdict BiasedResidual(const round::Proposal& proposal, LogitsView l, sampling::Sampler& s,
                              float* p) {
  for (int i = 0; i < proposal.length(); ++i) {
    s.Distribution(l.Row(i), p);
    const Token d = proposal.tokens[static_cast<std::size_t>(i)];
    if (s.noise().Uniform(Stream::kCoin, s.position()) < static_cast<double>(p[d])) {
      s.Push(d);
      continue;
    }
    const Token next = s.Draw(p, s.noise().Uniform(Stream::kResidual, s.position()));
    s.Pop(i);
    return {i, next, round::NextKind::kRecovered};
  }
  const Token next = s.Sample(l.Row(proposal.length()), p);
  s.Pop(proposal.length());
  return {proposal.length(), next, round::NextKind::kBonus};
}

TEST(ResidualVerifier, TheTestOfItsDistributionSeesRecoveryFromTheFullDistribution) {
  const std::vector<SamplingParameters> distributions = {{},
                                                         {.top_p = 0.8f, .logit_bias = {}},
                                                         {.top_k = 4, .logit_bias = {}},
                                                         {.temperature = 0.7f, .logit_bias = {}}};
  const auto chi_square = [](const SamplingParameters& s, const Drafts& drafts) {
    const auto e = ResidualExperiment(drafts, s);
    const double chi = sampling::ChiSquare(Play(e, BiasedResidual).committed[0],
                                           Buckets(sampling::ReferenceDistribution(e.logits, s)));
    std::printf("  chi-square %6.1f  biased rule, top_p %g, top_k %d, T %g\n", chi,
                static_cast<double>(s.top_p), s.top_k, static_cast<double>(s.temperature));
    return chi;
  };
  EXPECT_GT(chi_square({}, UniformOverHead(kResidualVocabulary)), 5 * kResidualBound);
  EXPECT_GT(chi_square({}, FarFromTheTarget(kResidualVocabulary)), 5 * kResidualBound);
  for (const auto& s : distributions)
    EXPECT_GT(chi_square(s, PeakedAtTwo(kResidualVocabulary)), 5 * kResidualBound);
}

TEST(ResidualVerifier, TheTestOfItsJointDistributionSeesIt) {
  constexpr int kSmall = 64;
  const Experiment e{.parameters = SamplingParameters{},
                     .logits = sampling::LogitsOf(HeadAndTail(kSmall)),
                     .drafts = PeakedAtTwo(kSmall),
                     .n_drafts = 2};
  const auto p = Buckets(HeadAndTail(kSmall));
  std::vector<double> joint;
  for (const double a : p)
    for (const double b : p) joint.push_back(a * b);
  EXPECT_GT(sampling::ChiSquare(Play(e, BiasedResidual).pairs, joint), 160);
  EXPECT_LT(sampling::ChiSquare(Play(e, VerifyOf(Residual())).pairs, joint), 80);
}

// A distribution other than the one that drafts were drawn from, such as one number for all tokens.
TEST(ResidualVerifier, TheTestOfItsDistributionSeesAConstantQ) {
  const auto e = ResidualExperiment(PeakedAtTwo(kResidualVocabulary));
  const std::vector<float> constant(kResidualVocabulary, 0.3f);
  const auto verify = [&](round::Proposal p, LogitsView l, sampling::Sampler& s, float* scratch) {
    if (p.length() > 0) p.q = constant.data();
    return Residual().Verify(p, l, s, scratch);
  };
  const auto distribution = Buckets(HeadAndTail(kResidualVocabulary));
  EXPECT_GT(sampling::ChiSquare(Play(e, verify).committed[0], distribution), 5 * kResidualBound);
  EXPECT_LT(sampling::ChiSquare(Play(e, VerifyOf(Residual())).committed[0], distribution),
            kResidualBound);
}

// p = (.5, .5), q = (.9, .1): if every draft of token 1 is dropped, token 0 has .9 (.5 / .9) + .1
// (.5) = .55.
TEST(ResidualVerifier, TheTestOfItsDistributionSeesDraftsThatAreDroppedForTheirValue) {
  const Experiment e{.parameters = SamplingParameters{},
                     .logits = sampling::LogitsOf({.5, .5, 0, 0, 0, 0}),
                     .drafts = {{.9f, .1f, 0, 0, 0, 0}}};
  const auto dropping = [](round::Proposal p, LogitsView l, sampling::Sampler& s, float* scratch) {
    if (p.length() > 0 && p.tokens[0] == 1) p = {};
    return Residual().Verify(p, l, s, scratch);
  };
  const auto wrong = Play(e, dropping).committed[0];
  EXPECT_GT(sampling::ChiSquare(wrong, {.5, .5, 0, 0, 0, 0}), 5 * kResidualBound);
  EXPECT_LT(sampling::ChiSquare(wrong, {.55, .45, 0, 0, 0, 0}), kResidualBound);
  EXPECT_LT(sampling::ChiSquare(Play(e, VerifyOf(Residual())).committed[0], {.5, .5, 0, 0, 0, 0}),
            kResidualBound);
}

// -- settings that give up the distribution
TEST(ResidualVerifier, AcceptsByTheThresholdLess) {
  const auto e = ResidualExperiment(UniformOverHead(kResidualVocabulary));
  for (const float t : {0.0f, 0.1f, 0.4f, 0.6f, 1.0f}) {
    const Residual verifier({.acceptance_threshold = t});
    double expected = 0;
    for (const double p : {.28, .20, .13, .10, .07})
      expected += .2 * std::max(0.0, std::min(1.0, p / .2) - static_cast<double>(t));
    const auto accepted = static_cast<double>(Play(e, VerifyOf(verifier)).accepted);
    EXPECT_NEAR(accepted / e.rounds, expected,
                4 * std::sqrt(expected * (1 - expected) / e.rounds) + 1e-9)
        << t;
    EXPECT_EQ(verifier.Lossless(), t == 0);
  }
}

TEST(ResidualVerifier, RecoversFromTheDistributionItselfWithoutAdjustment) {
  const Residual verifier({.skip_sample_adjustment = true});
  EXPECT_FALSE(verifier.Lossless());
  const auto e = ResidualExperiment(PeakedAtTwo(kResidualVocabulary));
  const auto tally = Play(e, VerifyOf(verifier)), exact = Play(e, VerifyOf(Residual()));
  const auto distribution = Buckets(HeadAndTail(kResidualVocabulary));
  EXPECT_EQ(tally.accepted, exact.accepted);
  EXPECT_LT(sampling::ChiSquare(tally.recovered, distribution), kResidualBound);
  EXPECT_GT(sampling::ChiSquare(tally.committed[0], distribution), 5 * kResidualBound);
}

}  // namespace
}  // namespace foretoken::verify
