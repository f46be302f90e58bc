// SPDX-License-Identifier: Apache-2.0
#include "verify/strategies/block.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "verify/rounds_testing.h"
#include "verify/strategies/residual.h"

namespace foretoken::verify {
namespace {

// The algorithm as published, in double and without kernels; and with typical mistakes.
struct Definition {
  // Coins keyed by position alone, so that the next round uses them again.
  bool stale_coins = false;
  bool residual_of_p = false;    // max(0, p - q) instead of max(0, P_i p - q)
  bool coins_against_p = false;  // keep i drafts if u_i < P_i

  round::Verdict operator()(const round::Proposal& proposal, LogitsView logits,
                            sampling::Sampler& sampler, float* scratch) const {
    const Pos begin = sampler.position();
    const int m = proposal.length();
    std::vector<double> distribution, kept_distribution;
    double joint = 1;
    int kept = 0;
    for (int i = 0; i <= m; ++i) {
      sampler.Distribution(logits.Row(i), scratch);
      distribution.assign(scratch, scratch + sampler.vocabulary());
      if (i < m) {
        const double factor = residual_of_p ? 1 : joint;
        for (std::size_t x = 0; x < distribution.size(); ++x)
          distribution[x] =
              std::max(0.0, factor * distribution[x] - Q(proposal, i, static_cast<Token>(x)));
      }
      const double mass = std::accumulate(distribution.begin(), distribution.end(), 0.0);
      const double h = i == m || coins_against_p ? joint : mass / (mass + 1 - joint);
      const auto index = stale_coins ? 0 : static_cast<std::uint32_t>(begin);
      if (i == 0 || sampler.noise().Uniform(Stream::kCoin, begin + i - 1, index) < h) {
        kept = i;
        kept_distribution = distribution;
      }
      if (i == m) break;
      const Token d = proposal.tokens[static_cast<std::size_t>(i)];
      joint = std::min(1.0, joint * static_cast<double>(scratch[d]) / Q(proposal, i, d));
      sampler.Push(d);
    }
    sampler.Pop(m);
    if (kept == m)
      return {kept, Race(kept_distribution, sampler.noise(), begin + kept),
              round::NextKind::kBonus};
    return {kept, Draw(kept_distribution, sampler.noise().Uniform(Stream::kResidual, begin + kept)),
            round::NextKind::kRecovered};
  }

  static double Q(const round::Proposal& proposal, int i, Token x) {
    if (proposal.q == nullptr) return proposal.tokens[static_cast<std::size_t>(i)] == x ? 1 : 0;
    return static_cast<double>(proposal.Distribution(i)[x]);
  }
  static Token Race(const std::vector<double>& distribution, const Noise& noise, Pos position) {
    const auto [first, second, third] = noise.Counter(Stream::kTargetRace, position);
    std::pair<double, std::size_t> best = {HUGE_VAL, 0};
    for (std::size_t x = 0; x < distribution.size(); ++x) {
      const auto block = static_cast<std::uint32_t>(x / 64 * 16 + x % 16);
      const auto word = Philox({first, second, third, block}, noise.Key())[x / 16 % 4];
      const double v = (static_cast<double>(word) + 0.5) * 0x1p-32;
      if (distribution[x] > 0) best = std::min(best, {-std::log1p(-v) / distribution[x], x});
    }
    return static_cast<Token>(best.second);
  }
  static Token Draw(const std::vector<double>& distribution, double u) {
    double left = u * std::accumulate(distribution.begin(), distribution.end(), 0.0);
    std::size_t x = 0;
    while (x + 1 < distribution.size() && !(left < distribution[x])) left -= distribution[x++];
    return static_cast<Token>(x);
  }
};

Experiment OfTwoTokens(int n_drafts, int rounds = 40000) {
  return {.parameters = SamplingParameters{},
          .logits = sampling::LogitsOf({1.0 / 3, 2.0 / 3}),
          .drafts = {{2.0f / 3, 1.0f / 3}},
          .n_drafts = n_drafts,
          .rounds = rounds};
}

// E P_1 = 2/3 and E P_2 = 2/3 (1/6 + 1/3) + 1/3 (1/3 + 1/3) = 5/9 make 11/9 drafts; one by one it
// would be 2/3 + 4/9 = 10/9.
TEST(BlockVerifier, AcceptsAsManyAsTheJointAcceptanceSays) {
  const auto mean = [](const Verifier& verifier) {
    return static_cast<double>(Play(OfTwoTokens(2), VerifyOf(verifier)).accepted) / 40000;
  };
  constexpr double kFourSigma = 4 * 0.87 / 200;
  EXPECT_NEAR(mean(Block()), 11.0 / 9, kFourSigma);
  EXPECT_NEAR(mean(Residual()), 10.0 / 9, kFourSigma);
}

TEST(BlockVerifier, AcceptsNoFewerDraftsThanResidual) {
  constexpr int kVocabulary = 64;
  for (const auto& [name, drafts] : {std::pair{"uniform", UniformOverHead(kVocabulary)},
                                     {"far", FarFromTheTarget(kVocabulary)},
                                     {"peaked", PeakedAtTwo(kVocabulary)},
                                     {"certain", Drafts{}}}) {
    for (const int n_drafts : {1, 2, 4, 8}) {
      const Experiment e{.parameters = SamplingParameters{},
                         .logits = sampling::LogitsOf(HeadAndTail(kVocabulary)),
                         .drafts = drafts,
                         .n_drafts = n_drafts,
                         .rounds = 20000,
                         .rows_depend_on_text = true};
      const auto block = Play(e, VerifyOf(Block())).accepted,
                 residual = Play(e, VerifyOf(Residual())).accepted;
      const double rounds = e.rounds;
      std::printf("  accepted of %d: block %.4f, residual %.4f, %s\n", n_drafts,
                  static_cast<double>(block) / rounds, static_cast<double>(residual) / rounds,
                  name);
      // For both, the deviation of a round's number is below sqrt(mean (1 + 2 mean)).
      const double mean = static_cast<double>(residual) / rounds;
      const double sigma = std::sqrt(2 * mean * (1 + 2 * mean) / rounds) * rounds;
      EXPECT_GE(static_cast<double>(block), static_cast<double>(residual) - 4 * sigma) << name;
    }
  }
}

TEST(BlockVerifier, DecidesAsTheDefinitionInDouble) {
  for (const auto& drafts :
       {UniformOverHead(16), FarFromTheTarget(16), PeakedAtTwo(16), Drafts{}}) {
    const Experiment e{
        .parameters = {.temperature = 0.8f, .presence_penalty = 0.5f, .dry = DryPenalty()},
        .logits = sampling::LogitsOf(HeadAndTail(16)),
        .drafts = drafts,
        .n_drafts = 4,
        .rounds = 5000,
        .rows_depend_on_text = true};
    int different = 0;
    std::int64_t accepted = 0;
    Play(e, [&](const round::Proposal& p, LogitsView l, sampling::Sampler& s, float* scratch) {
      const auto verdict = Block().Verify(p, l, s, scratch);
      const auto expected = Definition()(p, l, s, scratch);
      different += verdict.accepted != expected.accepted || verdict.next != expected.next;
      accepted += verdict.accepted;
      return verdict;
    });
    EXPECT_LE(different, 1);  // one of 20000 draws may depend on rounding
    EXPECT_GT(accepted, 500);
  }
}

TEST(BlockVerifier, AlwaysAcceptsDraftsFromTheTargetsOwnDistribution) {
  const auto p = HeadAndTail(64);
  Experiment e{.parameters = SamplingParameters{},
               .logits = sampling::LogitsOf(p),
               .drafts = {Floats(p)},
               .n_drafts = 4,
               .rounds = 5000};
  SamplerOf(64).Distribution(e.logits.data(), e.drafts.q.data());
  EXPECT_EQ(Play(e, VerifyOf(Block())).accepted, 20000);
}

TEST(BlockVerifier, NeverKeepsWhatTheTargetGivesNoProbability) {
  const Experiment e{.parameters = SamplingParameters{},
                     .logits = sampling::LogitsOf({.5, .3, .2, 0, 0, 0}),
                     .drafts = {{.5f, 0, 1e-20f, .5f, 0, 0}},
                     .n_drafts = 4};
  const auto tally = Play(e, VerifyOf(Block()));
  for (const auto& seen : tally.committed) EXPECT_EQ(seen[3] + seen[4] + seen[5], 0);
  EXPECT_LT(sampling::ChiSquare(tally.committed[0], {.5, .3, .2, 0, 0, 0}), 30);
  EXPECT_GT(tally.accepted, 1000);
}

// Mistakes that LosslessVerifier.GivesTextsTheirDistributionOverManyRounds must detect.
TEST(BlockVerifier, TheTestOfItsTextsSeesMistakes) {
  const auto chi_square = [](const char* name, bool fresh, const Definition& verify) {
    const auto e = Texts(3, false);
    const double chi = ChiSquareOfTexts(e, PlayTexts(e, 5, fresh, verify));
    std::printf("  chi-square %6.1f  block, texts, %s\n", chi, name);
    return chi;
  };
  const double bound = Bound(242);
  EXPECT_LT(chi_square("no mistake", true, {}), bound);
  EXPECT_GT(chi_square("coins serve twice", true, {.stale_coins = true}), 2 * bound);
  EXPECT_GT(chi_square("drafts' noise serves twice", false, {}), 2 * bound);
  EXPECT_GT(chi_square("residual of p alone", true, {.residual_of_p = true}), 2 * bound);
  EXPECT_GT(chi_square("coins against P_i", true, {.coins_against_p = true}), 2 * bound);
}

}  // namespace
}  // namespace foretoken::verify
