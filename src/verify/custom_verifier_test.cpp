// SPDX-License-Identifier: Apache-2.0
#include "verify/custom_verifier.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>

#include "verify/rounds_testing.h"
#include "verify/strategies/residual.h"
#include "verify/strategies/sample_match.h"

namespace foretoken::verify {
namespace {

constexpr int kCustomVocabulary = 1024;
constexpr double kCustomBound = 30;

using Rule = std::function<Verdict(DraftsToVerify&)>;

class Own final : public foretoken::Verifier {
 public:
  Own(Rule rule, bool lossless) : rule_(std::move(rule)), lossless_(lossless) {}
  std::string_view name() const override { return "own"; }
  bool lossless() const override { return lossless_; }
  Verdict Verify(DraftsToVerify& draft) override { return rule_(draft); }

 private:
  Rule rule_;
  bool lossless_;
};

CustomVerifier Custom(Rule rule, bool lossless = true, int vocabulary = kCustomVocabulary,
                      std::vector<std::string>* faults = nullptr) {
  return {std::make_shared<Own>(std::move(rule), lossless),
          {.vocabulary = vocabulary, .on_fault = [faults](std::string what) {
             if (faults != nullptr) faults->push_back(std::move(what));
           }}};
}

// Rejection sampling through the public interface only.
Verdict OwnResidual(DraftsToVerify& draft) {
  for (int i = 0; i < draft.length(); ++i) {
    const auto p = draft.TargetDistribution(i), q = draft.DraftDistribution(i);
    const auto d = static_cast<std::size_t>(draft.tokens()[static_cast<std::size_t>(i)]);
    const double qd = q.empty() ? 1.0 : static_cast<double>(q[d]);
    if (draft.Uniform(NoisePurpose::kCoin, i) * qd < static_cast<double>(p[d])) continue;
    std::vector<float> rest(p.begin(), p.end());
    for (std::size_t x = 0; x < rest.size(); ++x)
      rest[x] = std::max(0.0f, rest[x] - (q.empty() ? (x == d ? 1.0f : 0.0f) : q[x]));
    return {i, draft.Draw(rest, draft.Uniform(NoisePurpose::kResidual, i))};
  }
  return {draft.length(), draft.Sample(draft.length())};
}

// Accepts with p and recovers from all of p: the known fault.
Verdict BiasedRule(DraftsToVerify& draft) {
  for (int i = 0; i < draft.length(); ++i) {
    const auto p = draft.TargetDistribution(i);
    const auto d = static_cast<std::size_t>(draft.tokens()[static_cast<std::size_t>(i)]);
    if (draft.Uniform(NoisePurpose::kCoin, i) < static_cast<double>(p[d])) continue;
    return {i, draft.Draw(p, draft.Uniform(NoisePurpose::kResidual, i))};
  }
  return {draft.length(), draft.Sample(draft.length())};
}

Experiment CustomExperiment(Drafts drafts, SamplingParameters s = {}) {
  return {.parameters = std::move(s),
          .logits = sampling::LogitsOf(HeadAndTail(kCustomVocabulary)),
          .drafts = std::move(drafts)};
}

double ChiSquareOf(const Experiment& e, const Rule& rule) {
  const auto distribution = sampling::ReferenceDistribution(e.logits, e.parameters);
  return sampling::ChiSquare(Play(e, VerifyOf(Custom(rule))).committed[0], Buckets(distribution));
}

TEST(CustomVerifier, AnExactRuleOfAProgramsOwnCommitsTheTargetsDistribution) {
  for (const auto& parameters : {SamplingParameters(), SamplingParameters{.top_p = 0.8f},
                                 SamplingParameters{.temperature = 0.7f, .top_k = 4}})
    for (const auto& drafts :
         {UniformOverHead(kCustomVocabulary), FarFromTheTarget(kCustomVocabulary), Drafts()}) {
      const double chi = ChiSquareOf(CustomExperiment(drafts, parameters), OwnResidual);
      std::printf("  chi-square %6.2f  own residual\n", chi);
      EXPECT_LT(chi, kCustomBound);
    }
}

TEST(CustomVerifier, ABiasedRuleFailsTheSameTest) {
  const double chi = ChiSquareOf(CustomExperiment(UniformOverHead(kCustomVocabulary)), BiasedRule);
  std::printf("  chi-square %6.2f  own biased rule\n", chi);
  EXPECT_GT(chi, 100);
}

TEST(CustomVerifier, SeesWhatForetokensOwnRulesSee) {
  auto e = CustomExperiment(UniformOverHead(kCustomVocabulary));
  e.n_drafts = 3;
  const auto match = Custom([](DraftsToVerify& draft) -> Verdict {
    for (int i = 0;; ++i) {
      const Token own = draft.Sample(i);
      if (i == draft.length() || own != draft.tokens()[static_cast<std::size_t>(i)])
        return {i, own};
    }
  });
  const SampleMatch reference;
  Table table(e);
  int accepted = 0;
  for (int round = 0; round < 500; ++round) {
    const auto play = [&](const Verifier& verifier) {
      auto sampler = table.Sampler(Noise(7, static_cast<std::uint64_t>(round)), 8);
      return table.Play(sampler, 3, round, 0, VerifyOf(verifier));
    };
    const auto got = play(match), want = play(reference);
    ASSERT_EQ(got.accepted, want.accepted);
    ASSERT_EQ(got.next, want.next);
    ASSERT_EQ(got.kind, want.kind);
    accepted += got.accepted;
  }
  EXPECT_GT(accepted, 0);
}

TEST(CustomVerifier, DistributionsOfAllPositionsHoldInAnyOrderAndLeaveNoTrace) {
  const std::vector<std::vector<float>> rows = {{1, 2, 3, 4}, {4, 3, 2, 1}, {0, 5, 0, 5}};
  const auto sampler_of = [](const SamplingParameters& parameters) {
    sampling::Sampler sampler({.parameters = parameters, .end_tokens = {}, .noise = Noise(1, 2)}, 4,
                              sampling::BestKernels());
    sampler.Begin(std::vector<Token>{0, 1}, 8);
    return sampler;
  };
  // With a penalty the distribution at a position depends on the drafts before it.
  const SamplingParameters penal{.repetition_penalty = 2.0f};
  auto sampler = sampler_of(penal), walked = sampler_of(penal);
  std::vector<std::vector<float>> want(3, std::vector<float>(4));
  const std::vector<Token> drafts = {3, 0};
  for (std::size_t i = 0; i < 3; ++i) {
    walked.Distribution(rows[i].data(), want[i].data());
    if (i < 2) walked.Push(drafts[i]);
  }
  int calls = 0;
  const auto verifier = Custom(
      [&](DraftsToVerify& draft) -> Verdict {
        ++calls;
        for (const int i : {2, 0, 1, 2, 0}) {
          const auto distribution = draft.TargetDistribution(i);
          EXPECT_EQ(std::vector<float>(distribution.begin(), distribution.end()),
                    want[static_cast<std::size_t>(i)]);
          EXPECT_EQ(draft.TargetLogits(i)[1], rows[static_cast<std::size_t>(i)][1]);
        }
        EXPECT_TRUE(draft.TargetDistribution(3).empty());
        EXPECT_TRUE(draft.TargetDistribution(-1).empty());
        EXPECT_TRUE(draft.TargetLogits(3).empty());
        EXPECT_TRUE(draft.DraftDistribution(2).empty());
        EXPECT_EQ(draft.DraftDistribution(0)[3], 0.75f);
        EXPECT_EQ(draft.Sample(9), kNoToken);
        EXPECT_EQ(draft.Draw({}, 0.5), kNoToken);
        EXPECT_EQ(draft.text().size(), 2u);
        return {1, 2};
      },
      true, 4);
  const auto verdict =
      VerifyOnce(verifier, drafts, rows, {{0, 0.25f, 0, 0.75f}, {0.5f, 0.5f, 0, 0}}, sampler);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(verdict.accepted, 1);
  EXPECT_EQ(verdict.next, 2);
  EXPECT_EQ(verdict.kind, round::NextKind::kRecovered);
  EXPECT_EQ(sampler.position(), 2);
}

TEST(CustomVerifier, AtTemperatureZeroALosslessOneIsGreedyAndALossyOneSeesOneHotDistributions) {
  const std::vector<std::vector<float>> rows = {{1, 2, 3, 0}, {4, 3, 2, 1}};
  const auto verify = [&](bool lossless) {
    auto sampler = SamplerOf(4, {.temperature = 0, .logit_bias = {}});
    const auto verifier = Custom(
        [](DraftsToVerify& draft) -> Verdict {
          EXPECT_EQ(draft.TargetDistribution(0)[2], 1.0f);
          EXPECT_EQ(draft.TargetDistribution(0)[1], 0.0f);
          return {1, 3};
        },
        lossless, 4);
    return VerifyOnce(verifier, {1}, rows, {}, sampler);
  };
  EXPECT_EQ(verify(true).accepted, 0);
  EXPECT_EQ(verify(true).next, 2);
  EXPECT_EQ(verify(false).accepted, 1);
  EXPECT_EQ(verify(false).next, 3);
}

TEST(CustomVerifier, AVerdictThatIsNoneTakesTheTargetsOwnTokenAndIsToldOnce) {
  const std::vector<std::vector<float>> rows = {{9, 0, 0, 0}, {0, 9, 0, 0}};
  for (const Rule& rule : {Rule([](DraftsToVerify&) -> Verdict {
                             return {2, 0};
                           }),
                           Rule([](DraftsToVerify&) -> Verdict {
                             return {-1, 0};
                           }),
                           Rule([](DraftsToVerify&) -> Verdict {
                             return {0, 4};
                           }),
                           Rule([](DraftsToVerify&) -> Verdict {
                             return {1, -1};
                           }),
                           Rule([](DraftsToVerify&) -> Verdict { throw std::runtime_error("no"); }),
                           Rule([](DraftsToVerify&) -> Verdict { throw 7; })}) {
    std::vector<std::string> faults;
    const auto verifier = Custom(rule, true, 4, &faults);
    for (int time = 0; time < 3; ++time) {
      auto sampler = SamplerOf(4, {.top_k = 1, .logit_bias = {}});
      const auto verdict = VerifyOnce(verifier, {1}, rows, {}, sampler);
      EXPECT_EQ(verdict.accepted, 0);
      EXPECT_EQ(verdict.next, 0);
      EXPECT_EQ(sampler.position(), 1);
    }
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_TRUE(faults[0].starts_with("verifier 'own': ")) << faults[0];
  }
}

}  // namespace
}  // namespace foretoken::verify
