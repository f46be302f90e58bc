// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/sample_match.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "verify/rounds_testing.h"

namespace foretoken::verify {
namespace {

constexpr int kMatchVocabulary = 50;

// A target whose next logits follow from the last two tokens.
std::vector<float> RowOf(std::span<const Token> text) {
  const auto seed = static_cast<std::uint32_t>(text.back() * 64 + text[text.size() - 2]);
  return sampling::RandomLogits(kMatchVocabulary, seed, 1.5f);
}

// n tokens, in rounds of up to k drafts from a bad drafter.
std::vector<Token> Generate(const Verifier& verifier, int n, int k, const SamplingParameters& s) {
  sampling::Sampler sampler({.parameters = s, .end_tokens = {}, .noise = Noise(7, 1)},
                            kMatchVocabulary, sampling::BestKernels());
  sampler.Begin(std::vector<Token>{1, 2}, n + 2 * k + 2);
  std::mt19937 random(static_cast<std::uint32_t>(k));
  while (sampler.n_generated() < n) {
    std::vector<Token> text(sampler.text().begin(), sampler.text().end()), drafts;
    std::vector<std::vector<float>> rows = {RowOf(text)};
    for (int i = 0; i < k; ++i) {
      const auto best =
          std::max_element(rows.back().begin(), rows.back().end()) - rows.back().begin();
      drafts.push_back(random() % 4 == 0 ? static_cast<Token>(random() % kMatchVocabulary)
                                         : static_cast<Token>(best));
      text.push_back(drafts.back());
      rows.push_back(RowOf(text));
    }
    const auto verdict = VerifyOnce(verifier, drafts, rows, {}, sampler);
    for (int i = 0; i < verdict.accepted; ++i) sampler.Push(drafts[static_cast<std::size_t>(i)]);
    sampler.Push(verdict.next);
  }
  const auto text = sampler.text().first(static_cast<std::size_t>(2 + n));
  return {text.begin(), text.end()};
}

TEST(SampleMatchVerifier, GivesTheTextOfPlainDecodingWhateverIsDrafted) {
  const SamplingParameters penalties{.temperature = 0.9f,
                                     .top_p = 0.9f,
                                     .repetition_penalty = 1.2f,
                                     .presence_penalty = 0.3f,
                                     .logit_bias = {}};
  for (const auto& s : {SamplingParameters{}, penalties}) {
    const auto plain = Generate(SampleMatch(), 200, 0, s);
    for (const int k : {1, 2, 5, 8}) EXPECT_EQ(Generate(SampleMatch(), 200, k, s), plain) << k;
  }
}

TEST(SampleMatchVerifier, AtTemperatureZeroSoDoAllStrategies) {
  const SamplingParameters s{.temperature = 0, .repetition_penalty = 1.2f, .logit_bias = {}};
  const auto plain = Generate(SampleMatch(), 200, 0, s);
  for (const auto name : VerifierNames())
    for (const int k : {0, 1, 5})
      EXPECT_EQ(Generate(*VerifierNamed(name), 200, k, s), plain) << name << " " << k;
}

// Given a mismatch, the sample is any token but the draft, with distribution p(x) (1 - q(x)),
// normalised.
TEST(SampleMatchVerifier, RecoversTheSampleThatFailedToMatch) {
  const auto p = HeadAndTail(1024);
  for (const auto& drafts : {UniformOverHead(1024), FarFromTheTarget(1024)}) {
    const Experiment e{
        .parameters = SamplingParameters{}, .logits = sampling::LogitsOf(p), .drafts = drafts};
    std::vector<double> distribution(p.size());
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i)
      sum += distribution[i] = p[i] * (1 - static_cast<double>(drafts.q[i]));
    for (double& x : distribution) x /= sum;
    const double chi =
        sampling::ChiSquare(Play(e, VerifyOf(SampleMatch())).recovered, Buckets(distribution));
    std::printf("  chi-square %6.2f  sample-match, recovered\n", chi);
    EXPECT_LT(chi, 30);
  }
}

// If drafter and target have the same distribution and share the noise, they draw the same tokens.
TEST(SampleMatchVerifier, AgreesWithADrafterOfTheSameDistributionAndNoise) {
  const auto row = sampling::RandomLogits(kMatchVocabulary, 3);
  auto sampler = SamplerOf(kMatchVocabulary, {}, Noise(3, 3));
  std::vector<float> distribution(kMatchVocabulary);
  std::vector<Token> drafts;
  for (int i = 0; i < 4; ++i) {
    drafts.push_back(sampler.Sample(row.data(), distribution.data()));
    sampler.Push(drafts.back());
  }
  sampler.Pop(4);
  ASSERT_TRUE(SampleMatch().SharesNoise());
  EXPECT_EQ(VerifyOnce(SampleMatch(), drafts, {row, row, row, row, row}, {}, sampler).accepted, 4);
}

}  // namespace
}  // namespace foretoken::verify
