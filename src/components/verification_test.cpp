// SPDX-License-Identifier: Apache-2.0
// The rules through their public face: known values of each, the distribution of what they keep
// with a negative control, and what is refused.
#include "foretoken/verification.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "foretoken/verifier.h"
#include "verify/rounds_testing.h"

namespace foretoken {
namespace {

using verify::Bound;

constexpr double kNearlyOne = 1 - 0x1.0p-53;
constexpr float kInfinite = std::numeric_limits<float>::infinity();

std::vector<float> Logits(const std::vector<double>& p) {
  return sampling::LogitsOf(p);
}
std::vector<float> Joined(const std::vector<std::vector<float>>& rows) {
  std::vector<float> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

VerificationOptions By(VerifyStrategy strategy, int vocabulary, float temperature = 1) {
  VerificationOptions options;
  options.vocabulary_size = vocabulary;
  options.speculative.strategy = strategy;
  options.sampling.temperature = temperature;
  return options;
}

// One draft and the target's probabilities before and behind it.
struct Case {
  std::vector<double> p, behind;
  std::vector<float> q = {};  // empty: certain
  std::int32_t draft = 0;
  std::vector<double> accept = {}, recover = {}, target = {};
};
VerifiedDrafts Verified(const VerificationOptions& options, const Case& c) {
  const auto n = static_cast<int>(c.p.size());
  const auto logits = Joined({Logits(c.p), Logits(c.behind.empty() ? c.p : c.behind)});
  VerificationInput input{.drafts = {&c.draft, 1}, .target_logits = {logits, n}};
  if (!c.q.empty()) input.draft_probabilities = {c.q, n};
  input.uniforms = {c.accept, c.recover, c.target};
  const auto verified = Verify(options, input);
  EXPECT_TRUE(verified) << verified.error().message;
  return verified ? *verified : VerifiedDrafts();
}

std::string Refusal(const VerificationOptions& options, const VerificationInput& input) {
  const auto verified = Verify(options, input);
  return verified ? "" : verified.error().message;
}

TEST(Verification, GreedyTakesTheTargetsBestTokenWhateverTheDraftersProbabilities) {
  // The ratio of the probabilities would keep the draft.
  const Case c{.p = {.45, .55, 0}, .q = {.40f, .35f, .25f}, .draft = 0};
  for (const VerifyStrategy strategy :
       {VerifyStrategy::kAuto, VerifyStrategy::kGreedy, VerifyStrategy::kResidual,
        VerifyStrategy::kBlock, VerifyStrategy::kSampleMatch, VerifyStrategy::kTargetProbability}) {
    const VerifiedDrafts verified = Verified(By(strategy, 3, 0), c);
    EXPECT_EQ(verified.accepted, 0) << Name(strategy);
    EXPECT_EQ(verified.next, 1) << Name(strategy);
    EXPECT_EQ(verified.origin, TokenOrigin::kRecovered);
    EXPECT_EQ(verified.strategy, "greedy") << Name(strategy);
    EXPECT_TRUE(verified.lossless);
  }
  Case right = c;
  right.draft = 1;
  right.behind = {.3, .3, .4};
  const VerifiedDrafts verified = Verified(By(VerifyStrategy::kAuto, 3, 0), right);
  EXPECT_EQ(verified.accepted, 1);
  EXPECT_EQ(verified.next, 2);
  EXPECT_EQ(verified.origin, TokenOrigin::kBonus);
  EXPECT_EQ(verified.strategy, "greedy");
}

TEST(Verification, ResidualAcceptsWhileUTimesQIsBelowP) {
  const VerificationOptions options = By(VerifyStrategy::kResidual, 2);
  Case c{.p = {.5, .5}, .behind = {.25, .75}, .q = {.8f, .2f}, .draft = 0};
  for (const auto& [u, accepted] : {std::pair{0.0, 1}, {.6249, 1}, {.6251, 0}, {kNearlyOne, 0}}) {
    c.accept = {u}, c.recover = {.999}, c.target = {.5, .3};
    const VerifiedDrafts verified = Verified(options, c);
    EXPECT_EQ(verified.accepted, accepted) << u;
    // Behind the draft .3 is token 1; in its place only 1 has something left: max(0, p - q) = (0,
    // .3).
    EXPECT_EQ(verified.next, 1) << u;
    EXPECT_EQ(verified.origin, accepted ? TokenOrigin::kBonus : TokenOrigin::kRecovered);
    c.recover = {0};
    EXPECT_EQ(Verified(options, c).next, 1) << u;
  }
  // p = q always accepts, p = 0 always rejects.
  c = {.p = {.5, .5}, .q = {.5f, .5f}, .draft = 1, .accept = {kNearlyOne}};
  EXPECT_EQ(Verified(options, c).accepted, 1);
  c = {.p = {1, 0}, .q = {.5f, .5f}, .draft = 1, .accept = {0}};
  EXPECT_EQ(Verified(options, c).accepted, 0);
  EXPECT_EQ(Verified(options, c).next, 0);
  // A certain draft: accepted with p(d), and recovered from p without it.
  c = {.p = {.5, .3, .2}, .draft = 0, .accept = {.499}};
  EXPECT_EQ(Verified(By(VerifyStrategy::kResidual, 3), c).accepted, 1);
  c.accept = {.501}, c.recover = {.599};
  EXPECT_EQ(Verified(By(VerifyStrategy::kResidual, 3), c).next, 1);
  c.recover = {.601};
  EXPECT_EQ(Verified(By(VerifyStrategy::kResidual, 3), c).next, 2);
}

TEST(Verification, SampleMatchKeepsTheOneTokenThatItDraws) {
  const VerificationOptions options = By(VerifyStrategy::kSampleMatch, 3);
  Case c{.p = {.5, .3, .2}, .behind = {.1, .1, .8}, .draft = 0};
  for (const auto& [u, drawn] : {std::pair{.1, 0}, {.499, 0}, {.501, 1}, {.799, 1}, {.801, 2}}) {
    c.target = {u, .5};
    const VerifiedDrafts verified = Verified(options, c);
    EXPECT_EQ(verified.accepted, drawn == 0) << u;
    EXPECT_EQ(verified.next, drawn == 0 ? 2 : drawn) << u;
  }
}

TEST(Verification, TargetProbabilityAcceptsWithPAndRecoversWithoutTheDraft) {
  const VerificationOptions options = By(VerifyStrategy::kTargetProbability, 3);
  Case c{.p = {.5, .3, .2}, .q = {.1f, .1f, .8f}, .draft = 1, .accept = {.299}};
  EXPECT_EQ(Verified(options, c).accepted, 1);
  c.accept = {.301}, c.recover = {.71};  // (.5, 0, .2) / .7
  EXPECT_EQ(Verified(options, c).accepted, 0);
  EXPECT_EQ(Verified(options, c).next, 0);
  c.recover = {.72};
  EXPECT_EQ(Verified(options, c).next, 2);
}

TEST(Verification, TypicalAcceptanceComparesWithTheEntropy) {
  VerificationOptions options = By(VerifyStrategy::kTypicalAcceptance, 4);
  // H = ln 4, so delta e^-H = .075 < epsilon.
  Case c{.p = {.25, .25, .25, .25}, .draft = 3};
  EXPECT_EQ(Verified(options, c).accepted, 1);
  EXPECT_FALSE(Verified(options, c).lossless);
  options.speculative.typical_epsilon = 1;
  options.speculative.typical_delta = .99f;  // .2475
  EXPECT_EQ(Verified(options, c).accepted, 1);
  options.speculative.typical_delta = 1;  // .25: not more
  c.p = {.26, .25, .25, .24};
  EXPECT_EQ(Verified(options, c).accepted, 0);
}

TEST(Verification, RelaxedAcceptsWhatTheTargetNearlyPrefers) {
  VerificationOptions options = By(VerifyStrategy::kRelaxed, 3);
  options.speculative.relaxed_delta = .1f;
  Case c{.p = {.5, .41, .09}, .draft = 1};
  EXPECT_EQ(Verified(options, c).accepted, 1);
  c.p = {.5, .39, .11};
  EXPECT_EQ(Verified(options, c).accepted, 0);
  EXPECT_EQ(Verified(options, c).next, 0);
  options.speculative.relaxed_delta = 1;
  options.speculative.relaxed_top_n = 1;
  EXPECT_EQ(Verified(options, c).accepted, 0);
}

TEST(Verification, LogitComparisonReadsTheDraftersLogits) {
  const VerificationOptions options = By(VerifyStrategy::kLogitComparison, 2);
  const std::vector<float> target = {1.0f, 2.0f, 1.0f, 2.0f};
  const std::int32_t draft = 0;
  VerificationInput input{.drafts = {&draft, 1}, .target_logits = {target, 2}};
  EXPECT_NE(Refusal(options, input).find("give draft_logits"), std::string::npos);
  for (const auto& [logit, accepted] : {std::pair{1.0f, 1}, {1.000009f, 1}, {1.00002f, 0}}) {
    const std::vector<float> own = {logit, -3.0f};
    input.draft_logits = {own, 2};
    EXPECT_EQ(Verify(options, input)->accepted, accepted) << logit;
  }
}

TEST(Verification, BlockVerificationIsThePublishedOne) {
  // m = 2; P_1 = p/q = .5, r_1 = max(0, .5 p - q).
  const std::vector<double> p1 = {.4, .6}, p2 = {.9, .1}, p3 = {.2, .8};
  const std::vector<float> q = {.8f, .2f, .3f, .7f};
  const std::vector<std::int32_t> drafts = {0, 1};
  const auto logits = Joined({Logits(p1), Logits(p2), Logits(p3)});
  const double joint_1 = .4 / .8, joint_2 = joint_1 * .1 / .7;
  const double left_1 = std::max(0.0, joint_1 * .9 - .3);  // token 0; token 1: .05 - .7 < 0
  const double h_1 = left_1 / (left_1 + 1 - joint_1), h_2 = joint_2;
  const auto verified = [&](double u1, double u2) {
    const std::vector<double> accept = {u1, u2}, recover = {.5, .5}, target = {.5, .5, .5};
    return *Verify(By(VerifyStrategy::kBlock, 2), {.drafts = drafts,
                                                   .draft_probabilities = {q, 2},
                                                   .target_logits = {logits, 2},
                                                   .uniforms = {accept, recover, target}});
  };
  EXPECT_EQ(verified(kNearlyOne, h_2 - 1e-6).accepted, 2);
  EXPECT_EQ(verified(kNearlyOne, h_2 - 1e-6).next, 1);
  EXPECT_EQ(verified(h_1 - 1e-6, h_2 + 1e-6).accepted, 1);
  EXPECT_EQ(verified(h_1 - 1e-6, h_2 + 1e-6).next, 0);
  EXPECT_EQ(verified(h_1 + 1e-6, h_2 + 1e-6).accepted, 0);
  EXPECT_EQ(verified(h_1 + 1e-6, h_2 + 1e-6).next, 1);  // max(0, p - q) = (0, .4)
}

TEST(Verification, SyntheticAcceptanceFollowsTheMapOfRates) {
  VerificationOptions options = By(VerifyStrategy::kAuto, 2);
  options.speculative.synthetic_acceptance_rate = .5;
  for (const auto& [k, base] : {std::pair{1, .5}, {2, .618034}, {3, .691414}, {5, .777307}}) {
    const std::vector<std::int32_t> drafts(static_cast<std::size_t>(k), 1);
    const std::vector<float> logits(2 * static_cast<std::size_t>(k + 1));
    for (const double step : {-1e-5, 1e-5}) {
      const std::vector<double> u(static_cast<std::size_t>(k), base + step);
      const auto verified = Verify(
          options, {.drafts = drafts, .target_logits = {logits, 2}, .uniforms = {.accept = u}});
      ASSERT_TRUE(verified);
      EXPECT_EQ(verified->accepted, step < 0 ? k : 0) << k;
      EXPECT_EQ(verified->next, 0);
      EXPECT_EQ(verified->strategy, "synthetic");
      EXPECT_FALSE(verified->lossless);
    }
  }
}

constexpr VerifyStrategy kLossless[] = {VerifyStrategy::kResidual, VerifyStrategy::kBlock,
                                        VerifyStrategy::kSampleMatch,
                                        VerifyStrategy::kTargetProbability};

TEST(Verification, NothingOutsideTheNucleusIsKept) {
  const std::vector<double> p = {.85, .10, .049, .001};
  for (const VerifyStrategy strategy : kLossless) {
    VerificationOptions options = By(strategy, 4);
    options.sampling.top_p = .5f;
    auto verification = DraftVerification::Create(options);
    ASSERT_TRUE(verification);
    const auto logits = Joined({Logits(p), Logits(p)});
    const std::vector<float> q = {.25f, .25f, .25f, .25f};
    for (int position = 0; position < 200; ++position) {
      const std::int32_t draft = position % 4;
      const auto verified = verification->Verify({.position = position,
                                                  .drafts = {&draft, 1},
                                                  .draft_probabilities = {q, 4},
                                                  .target_logits = {logits, 4}});
      ASSERT_TRUE(verified);
      EXPECT_EQ(verified->next, 0);
      EXPECT_TRUE(verified->accepted == 0 || draft == 0);
    }
  }
}

TEST(Verification, PaddingAndBannedTokensAreNeverKept) {
  // Rows of 6 for a vocabulary of 4, of which token 2 cannot come.
  const std::vector<float> row = {1, 2, -kInfinite, .5f, 99, std::nanf("")};
  const auto logits = Joined({row, row});
  const std::vector<float> q = {.1f, .1f, .7f, .1f, 5, 5};
  for (const VerifyStrategy strategy : kLossless) {
    auto verification = DraftVerification::Create(By(strategy, 4));
    ASSERT_TRUE(verification);
    for (int position = 0; position < 300; ++position) {
      const std::int32_t draft = position % 3 == 0 ? 2 : position % 4;
      const auto verified = verification->Verify({.position = position,
                                                  .drafts = {&draft, 1},
                                                  .draft_probabilities = {q, 6},
                                                  .target_logits = {logits, 6}});
      ASSERT_TRUE(verified) << verified.error().message;
      EXPECT_TRUE(verified->next >= 0 && verified->next < 4 && verified->next != 2);
      EXPECT_TRUE(verified->accepted == 0 || draft != 2);
    }
  }
}

// Counts the first kept token over many positions, by the head's tokens and all others together.
std::vector<std::int64_t> Kept(const VerificationOptions& options, const std::vector<float>& row,
                               const std::vector<float>& q, int rounds) {
  auto verification = DraftVerification::Create(options);
  EXPECT_TRUE(verification);
  const auto logits = Joined({row, row});
  std::vector<std::int64_t> kept(verify::kBuckets);
  std::mt19937 engine(5);
  std::discrete_distribution<std::int32_t> draw(q.begin(), q.end());
  for (int position = 0; position < rounds; ++position) {
    const std::int32_t draft = draw(engine);
    const auto verified =
        verification->Verify({.position = position,
                              .drafts = {&draft, 1},
                              .draft_probabilities = {q, options.vocabulary_size},
                              .target_logits = {logits, options.vocabulary_size}});
    EXPECT_TRUE(verified);
    ++kept[verify::BucketOf(verified->accepted > 0 ? draft : verified->next)];
  }
  return kept;
}

TEST(Verification, KeepsTheTargetsDistribution) {
  constexpr int kVocabulary = 1024, kRounds = 20000;
  const auto row = Logits(verify::HeadAndTail(kVocabulary));
  for (const auto& drafts :
       {verify::UniformOverHead(kVocabulary), verify::FarFromTheTarget(kVocabulary)})
    for (const float top_p : {1.0f, 0.8f}) {
      SamplingParameters sampling;
      sampling.top_p = top_p;
      const auto want = verify::Buckets(sampling::ReferenceDistribution(row, sampling));
      const auto chi_square = [&](VerificationOptions options) {
        options.sampling = sampling;
        return sampling::ChiSquare(Kept(options, row, drafts.q, kRounds), want);
      };
      for (const VerifyStrategy strategy : kLossless) {
        const double chi = chi_square(By(strategy, kVocabulary));
        std::printf("  chi-square %6.2f  %s, top_p %g\n", chi, Name(strategy), top_p);
        EXPECT_LT(chi, 30) << Name(strategy) << " top_p " << top_p;
      }
      // What is recovered from p itself is biased.
      VerificationOptions biased = By(VerifyStrategy::kResidual, kVocabulary);
      biased.speculative.skip_sample_adjustment = true;
      EXPECT_GT(chi_square(biased), 60) << "top_p " << top_p;
    }
}

TEST(Verification, TheDraftersLogitsStandForItsDistribution) {
  constexpr int kVocabulary = 64;
  VerificationOptions options = By(VerifyStrategy::kResidual, kVocabulary);
  options.sampling.top_k = 20;
  options.draft_sampling = SamplingParameters();
  options.draft_sampling->temperature = 1.4f;
  auto verification = DraftVerification::Create(options);
  ASSERT_TRUE(verification);
  int accepted = 0;
  for (int i = 0; i < 500; ++i) {
    const auto seed = static_cast<std::uint32_t>(i);
    const auto target = sampling::RandomLogits(3 * kVocabulary, seed, 1.0f);
    const auto own = sampling::RandomLogits(2 * kVocabulary, seed + 1000, 1.0f);
    std::vector<float> q;
    std::vector<std::int32_t> drafts;
    std::mt19937 engine(seed);
    for (int d = 0; d < 2; ++d) {
      const auto distribution = sampling::ReferenceDistribution(
          {own.begin() + d * kVocabulary, own.begin() + (d + 1) * kVocabulary},
          *options.draft_sampling);
      q.insert(q.end(), distribution.begin(), distribution.end());
      std::discrete_distribution<std::int32_t> draw(distribution.begin(), distribution.end());
      drafts.push_back(draw(engine));
    }
    VerificationInput input{.position = 7 * i,
                            .drafts = drafts,
                            .draft_probabilities = {q, kVocabulary},
                            .target_logits = {target, kVocabulary}};
    const auto by_probabilities = verification->Verify(input);
    input.draft_probabilities = {};
    input.draft_logits = {own, kVocabulary};
    const auto by_logits = verification->Verify(input);
    ASSERT_TRUE(by_probabilities && by_logits);
    EXPECT_EQ(by_logits->accepted, by_probabilities->accepted) << i;
    EXPECT_EQ(by_logits->next, by_probabilities->next) << i;
    accepted += by_logits->accepted;
  }
  EXPECT_GT(accepted, 100);
}

TEST(Verification, TheTextBeforeTheDraftsCountsForPenaltiesAndTheNoise) {
  const std::vector<float> row = {3, 2.5f, 0, 0};
  const auto logits = Joined({row, row});
  const std::vector<std::int32_t> text = {2, 3, 0};
  VerificationOptions options = By(VerifyStrategy::kAuto, 4, 0);
  options.sampling.frequency_penalty = 1;
  const std::int32_t draft = 1;
  VerificationInput input{.text = text, .drafts = {&draft, 1}, .target_logits = {logits, 4}};
  EXPECT_EQ(Verify(options, input)->accepted, 0);  // all of it is prompt
  input.n_generated = 1;
  const auto verified = Verify(options, input);  // token 0 came before: 1 is now the best one,
  EXPECT_EQ(verified->accepted, 1);
  EXPECT_EQ(verified->next, 0);  // and 0 again behind both
  // Noise: by the position alone, however much of the text is given.
  options = By(VerifyStrategy::kResidual, 4);
  options.seed = 11;
  int different = 0;
  for (int position = 3; position < 60; ++position) {
    input = {.text = text, .position = position, .target_logits = {row, 4}};
    const auto whole = Verify(options, input);
    input.text = {};
    ASSERT_TRUE(whole);
    EXPECT_EQ(whole->origin, TokenOrigin::kPlain);
    EXPECT_EQ(Verify(options, input)->next, whole->next);
    options.request_id = 1;
    different += Verify(options, input)->next != whole->next;
    options.request_id = 0;
  }
  EXPECT_GT(different, 5);
}

TEST(Verification, EachInstructionSetGivesTheSame) {
  constexpr int kVocabulary = 301;
  const auto target = sampling::RandomLogits(4 * kVocabulary, 3);
  const auto own = sampling::RandomLogits(3 * kVocabulary, 4);
  const std::vector<std::int32_t> drafts = {5, 100, 300};
  for (const VerifyStrategy strategy : kLossless)
    for (int position = 0; position < 40; ++position) {
      std::vector<VerifiedDrafts> all;
      for (const auto isa : kernels::AvailableIsas()) {
        VerificationOptions options = By(strategy, kVocabulary, 1.5f);
        options.isa = kernels::Name(isa);
        all.push_back(*Verify(options, {.position = position,
                                        .drafts = drafts,
                                        .draft_logits = {own, kVocabulary},
                                        .target_logits = {target, kVocabulary}}));
        EXPECT_EQ(all.back().accepted, all.front().accepted);
        EXPECT_EQ(all.back().next, all.front().next);
      }
    }
}

TEST(Verification, GivesLogprobsWhereTheyAreAskedFor) {
  const Case c{.p = {.5, .3, .2}, .behind = {.1, .1, .8}, .draft = 0};
  const auto logits = Joined({Logits(c.p), Logits(c.behind)});
  VerificationInput input{.drafts = {&c.draft, 1}, .target_logits = {logits, 3}};
  EXPECT_TRUE(Verify(By(VerifyStrategy::kAuto, 3, 0), input)->logprobs.empty());
  input.logprobs = 2;
  const auto verified = Verify(By(VerifyStrategy::kAuto, 3, 0), input);
  ASSERT_EQ(verified->logprobs.size(), 2u);
  EXPECT_NEAR(verified->logprobs[0].logprob, std::log(.5), 1e-6);
  EXPECT_NEAR(verified->logprobs[1].logprob, std::log(.8), 1e-6);
  ASSERT_EQ(verified->logprobs[0].top.size(), 2u);
  EXPECT_EQ(verified->logprobs[0].top[1].first, 1);
}

// Keeps every draft.
class KeepsAll final : public Verifier {
 public:
  std::string_view name() const override { return "all"; }
  bool lossless() const override { return false; }
  Verdict Verify(DraftsToVerify& draft) override {
    return {draft.length(), draft.Sample(draft.length())};
  }
};

TEST(Verification, TakesARuleOfTheProgramsOwn) {
  VerificationOptions options = By(VerifyStrategy::kAuto, 3, 0);
  options.verifier = std::make_shared<KeepsAll>();
  const VerifiedDrafts verified = Verified(options, {.p = {.5, .3, .2}, .draft = 2});
  EXPECT_EQ(verified.accepted, 1);
  EXPECT_EQ(verified.strategy, "all");
  EXPECT_FALSE(verified.lossless);
}

TEST(Verification, SaysWhatCannotBe) {
  const std::vector<float> logits = {1, 2, 1, 2}, q = {.5f, .5f}, bad_q = {.5f, .2f},
                           never = {1, 0};
  const std::int32_t draft = 1;
  const VerificationInput good{.drafts = {&draft, 1}, .target_logits = {logits, 2}};
  const VerificationOptions options = By(VerifyStrategy::kResidual, 2);
  EXPECT_EQ(Refusal(options, good), "");
  const auto begins = [&](const VerificationOptions& o, const VerificationInput& input,
                          const std::string& with) {
    const std::string message = Refusal(o, input);
    EXPECT_TRUE(message.starts_with(with)) << message;
  };
  begins(By(VerifyStrategy::kResidual, 0), good, "vocabulary size: 0 ");
  begins(By(VerifyStrategy::kGreedy, 2), good, "verify: 'greedy' with temperature");
  VerificationOptions other = options;
  other.sampling.grammar = "root ::= \"a\"";
  begins(other, good, "grammar: ");
  other = options;
  other.sampling.temperature = -1;
  EXPECT_NE(Refusal(other, good), "");
  other = options;
  other.isa = "z80";
  EXPECT_NE(Refusal(other, good), "");
  other = options;
  other.speculative.typical_delta = 2;
  EXPECT_NE(Refusal(other, good), "");
  VerificationInput input = good;
  const std::int32_t unknown = 2;
  input.drafts = {&unknown, 1};
  begins(options, input, "drafts: 2 is not in the vocabulary");
  const std::vector<std::int32_t> many(65, 0);
  input.drafts = many;
  begins(options, input, "drafts: 65 are given");
  input = good;
  input.target_logits = {std::span(logits).first(2), 2};
  begins(options, input, "target logits: 1 rows are given where 2 are needed");
  input = good;
  input.target_logits = {logits, 1};
  begins(options, input, "target logits: 4 rows");
  input = good;
  input.draft_probabilities = {bad_q, 2};
  begins(options, input, "draft probabilities: row 0 sums to 0.7");
  input.draft_probabilities = {never, 2};
  begins(options, input, "draft probabilities: row 0 gives draft 1 0");
  input = good;
  input.draft_logits = {logits, 2};
  begins(options, input, "draft logits: 2 rows");
  input = good;
  const std::vector<double> one = {1.0}, two = {.5, .5};
  input.uniforms.accept = one;
  begins(options, input, "accept: 1 is not a uniform number");
  input.uniforms.accept = two;
  begins(options, input, "accept: 2 uniform numbers");
  input = good;
  input.text = {&draft, 1};
  input.n_generated = 2;
  begins(options, input, "generated tokens: 2 ");
  input.n_generated = 0;
  input.position = 0;
  begins(options, input, "position: 0 lies within the text");
  input = good;
  input.logprobs = 65;
  begins(options, input, "logprobs: 65 ");
}

}  // namespace
}  // namespace foretoken
