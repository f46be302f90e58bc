// SPDX-License-Identifier: Apache-2.0
// Tests for every strategy of the registry, and more tests for those that call themselves lossless.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "verify/rounds_testing.h"

namespace foretoken::verify {
namespace {

// A sum of the kernels takes 256 tokens at once, so the tail begins in the first part and ends in the
// second one.
constexpr int kSuiteVocabulary = 384;
constexpr double kSuiteBound = 30;  // 5 degrees of freedom: p = 1.5e-5
constexpr double kPairsBound = 80;  // 35 degrees of freedom: p = 2e-5

struct Case {
  const char* name;
  SamplingParameters parameters;
};

std::vector<Case> Distributions() {
  std::vector<Case> distributions(7);
  distributions[0] = {"plain", {}};
  distributions[1] = {"top_p .8", {.top_p = 0.8f, .logit_bias = {}}};
  distributions[2] = {"top_k 4", {.top_k = 4, .logit_bias = {}}};
  distributions[3] = {"T .7", {.temperature = 0.7f, .logit_bias = {}}};
  distributions[4] = {"T .8", {.temperature = 0.8f, .logit_bias = {}}};
  distributions[5] = {"T 1.5, min_p .1", {.temperature = 1.5f, .min_p = 0.1f, .logit_bias = {}}};
  distributions[6] = {"penalties",
                      {.repetition_penalty = 1.5f,
                       .frequency_penalty = 0.3f,
                       .presence_penalty = 0.6f,
                       .dry = DryPenalty(),
                       .logit_bias = {{2, 0.5f}}}};
  return distributions;
}

std::vector<std::pair<const char*, Drafts>> ManyDrafts(int vocabulary) {
  return {{"uniform", UniformOverHead(vocabulary)},
          {"far", FarFromTheTarget(vocabulary)},
          {"peaked", PeakedAtTwo(vocabulary)},
          {"certain", {}}};
}

class AnyVerifier : public testing::TestWithParam<std::string_view> {
 protected:
  AnyVerifier() : verifier_(VerifierNamed(GetParam())) {}
  // `greedy` is only for temperature 0.
  SamplingParameters Own(SamplingParameters s) const {
    if (GetParam() == "greedy") s.temperature = 0;
    return s;
  }
  // Nothing is random at temperature 0.
  int Rounds() const { return GetParam() == "greedy" ? 500 : 40000; }
  void Report(const std::string& what, double chi) const {
    std::printf("  chi-square %6.2f  %s, %s\n", chi, std::string(GetParam()).c_str(), what.c_str());
  }
  std::unique_ptr<Verifier> verifier_;
};
class LosslessVerifier : public AnyVerifier {};

std::vector<std::string_view> LosslessNames() {
  std::vector<std::string_view> names;
  for (const auto name : VerifierNames())
    if (VerifierNamed(name)->Lossless()) names.push_back(name);
  return names;
}

// The distribution of the token after `text`, whose last `n` tokens are generated.
std::vector<double> Expected(const Experiment& e, std::vector<Token> text, int n) {
  const auto row = e.RowAfter(text.back());
  return sampling::ReferenceDistribution(
      sampling::ReferenceEdits(row, e.parameters, text, static_cast<int>(text.size()) - n, {}),
      e.parameters);
}

// Adds the continuations of `text`, up to n tokens. The text has probability p and belongs to this
// cell.
void AddJoint(const Experiment& e, int n, std::vector<Token>& text, double p, std::size_t cell,
              std::vector<double>& joint) {
  const auto before = static_cast<int>(text.size() - e.prompt.size());
  if (before == n) {
    joint[cell] += p;
    return;
  }
  const auto distribution = Expected(e, text, before);
  for (std::size_t t = 0; t < distribution.size(); ++t) {
    if (distribution[t] <= 0) continue;
    text.push_back(static_cast<Token>(t));
    AddJoint(e, n, text, p * distribution[t], cell * kBuckets + BucketOf(text.back()), joint);
    text.pop_back();
  }
}

// The distribution of the first n tokens behind e.prompt, by buckets: [kBuckets ^ n].
std::vector<double> Joint(const Experiment& e, int n) {
  std::vector<double> joint(static_cast<std::size_t>(std::pow(kBuckets, n)));
  auto text = e.prompt;
  AddJoint(e, n, text, 1, 0, joint);
  return joint;
}

TEST_P(LosslessVerifier, CommitsTheDistributionOfPlainDecoding) {
  for (const auto& distribution : Distributions())
    for (const auto& [drafts_name, drafts] : ManyDrafts(kSuiteVocabulary)) {
      const Experiment e{.parameters = Own(distribution.parameters),
                         .logits = sampling::LogitsOf(HeadAndTail(kSuiteVocabulary)),
                         .drafts = drafts,
                         .rounds = Rounds(),
                         .told = 1};
      const double chi = sampling::ChiSquare(Play(e, VerifyOf(*verifier_)).committed[0],
                                             Buckets(Expected(e, e.prompt, 0)));
      Report(std::string(distribution.name) + ", " + drafts_name, chi);
      EXPECT_LT(chi, kSuiteBound) << distribution.name << ", drafts " << drafts_name;
    }
}

// The second row's distribution depends on the first token and, with penalties, on the drafts
// before it.
TEST_P(LosslessVerifier, CommitsTheJointDistributionOfTwoTokens) {
  constexpr int kSmall = 64;
  const auto distributions = Distributions();
  for (const auto& distribution :
       {distributions[0], distributions[1], distributions[5], distributions[6]})
    for (const auto& [drafts_name, drafts] : ManyDrafts(kSmall)) {
      const Experiment e{.parameters = Own(distribution.parameters),
                         .logits = sampling::LogitsOf(HeadAndTail(kSmall)),
                         .drafts = drafts,
                         .n_drafts = 2,
                         .rounds = Rounds(),
                         .rows_depend_on_text = true,
                         .told = 2};
      const double chi = sampling::ChiSquare(Play(e, VerifyOf(*verifier_)).pairs, Joint(e, 2));
      Report(std::string("pairs, ") + distribution.name + ", " + drafts_name, chi);
      EXPECT_LT(chi, kPairsBound) << distribution.name << ", drafts " << drafts_name;
    }
}

// Three tokens: the last may be behind the drafts, and drafts may end by their own tokens.
TEST_P(LosslessVerifier, CommitsTheJointDistributionOfThreeTokens) {
  constexpr int kSmall = 16;
  const auto distributions = Distributions();
  for (const auto& distribution : {distributions[0], distributions[1], distributions[6]})
    for (const auto& [drafts_name, drafts] : ManyDrafts(kSmall))
      for (const Token last : {kNoToken, Token{2}}) {
        const Experiment e{.parameters = Own(distribution.parameters),
                           .logits = sampling::LogitsOf(HeadAndTail(kSmall)),
                           .drafts = drafts,
                           .n_drafts = last == kNoToken ? 2 : 4,
                           .rounds = Rounds(),
                           .rows_depend_on_text = true,
                           .last_draft = last};
        const auto distribution_of_three = Joint(e, 3);
        const auto freedom = static_cast<std::size_t>(
            std::count_if(distribution_of_three.begin(), distribution_of_three.end(),
                          [](double p) { return p > 0; }));
        const double chi =
            sampling::ChiSquare(Play(e, VerifyOf(*verifier_)).triples, distribution_of_three);
        Report(std::string("triples, ") + distribution.name + ", " + drafts_name +
                   (last == kNoToken ? "" : ", ending by themselves"),
               chi);
        EXPECT_LT(chi, Bound(std::max<std::size_t>(freedom - 1, 1)))
            << distribution.name << ", drafts " << drafts_name << ", last " << last;
      }
}

// Round after round with one noise: what decided one round must not decide the next one too.
TEST_P(LosslessVerifier, GivesTextsTheirDistributionOverManyRounds) {
  constexpr int kLength = 5;
  for (const bool rows_depend_on_text : {false, true})
    for (const int n_drafts : {1, 2, 3, 5}) {
      auto e = Texts(n_drafts, rows_depend_on_text);
      e.parameters = Own({});
      if (GetParam() == "greedy") e.rounds = 500;
      const auto cells = PlayTexts(e, kLength, true, VerifyOf(*verifier_));
      const double chi = ChiSquareOfTexts(e, cells);
      Report(std::string(rows_depend_on_text ? "texts, rows by text, " : "texts, ") +
                 std::to_string(n_drafts) + " drafts",
             chi);
      EXPECT_LT(chi, Bound(cells.size() - 1)) << n_drafts;
    }
}

TEST_P(AnyVerifier, DrawsBonusTokensFromTheProcessedDistribution) {
  Experiment e{.parameters = Own({.temperature = 0.8f, .top_k = 4, .logit_bias = {}}),
               .logits = sampling::LogitsOf(HeadAndTail(kSuiteVocabulary)),
               .drafts = UniformOverHead(kSuiteVocabulary)};
  const auto tally = Play(e, VerifyOf(*verifier_));
  const double chi = sampling::ChiSquare(tally.bonus, Buckets(Expected(e, e.prompt, 0)));
  Report("bonus", chi);
  EXPECT_GT(tally.accepted, 1000);
  EXPECT_LT(chi, kSuiteBound);
}

TEST_P(LosslessVerifier, NeverCommitsATokenOutsideTheNucleus) {
  const Experiment e{.parameters = Own({.top_p = 0.5f, .logit_bias = {}}),
                     .logits = sampling::LogitsOf({.85, .10, .029, .01, .01, .001}),
                     .drafts = UniformOverHead(6),
                     .n_drafts = 3,
                     .rounds = 5000};
  const auto tally = Play(e, VerifyOf(*verifier_));
  EXPECT_EQ(tally.committed[0][0], 5000);
  EXPECT_EQ(tally.committed[1][0], 5000);
  EXPECT_EQ(tally.bonus[0] + tally.recovered[0], 5000);
  EXPECT_GT(tally.accepted, 500);
}

TEST_P(AnyVerifier, NeverCommitsTheRestOfAPaddedVocabulary) {
  auto logits = sampling::LogitsOf({.3, .3, .4, 0, 0, 0});  // log 0 = -inf
  for (const auto& drafts : {FarFromTheTarget(6), UniformOverHead(6), Drafts{}}) {
    const Experiment e{
        .parameters = Own({}), .logits = logits, .drafts = drafts, .n_drafts = 2, .rounds = 5000};
    const auto tally = Play(e, VerifyOf(*verifier_));
    for (const auto& seen : {tally.committed[0], tally.committed[1], tally.bonus, tally.recovered})
      EXPECT_EQ(seen[3] + seen[4] + seen[5], 0);
  }
}

TEST_P(AnyVerifier, RejectsADraftThatIsNotInTheVocabulary) {
  const std::vector<float> row = sampling::LogitsOf({.5, .3, .2});
  for (const float temperature : {0.0f, 1.0f}) {
    auto sampler = SamplerOf(3, Own({.temperature = temperature, .logit_bias = {}}));
    const auto verdict = VerifyOnce(*verifier_, {77}, {row, row}, {}, sampler);
    EXPECT_EQ(verdict.accepted, 0);
    EXPECT_TRUE(verdict.next >= 0 && verdict.next < 3);
  }
}

TEST_P(AnyVerifier, AtTemperatureZeroAcceptsWhatTheTargetWouldSay) {
  auto sampler = SamplerOf(3, {.temperature = 0, .logit_bias = {}});
  const std::vector<float> one = {0, 2, 2}, two = {0, 1, 2};  // of equal ones the lowest id
  const std::vector<std::vector<float>> q = {{.4f, .35f, .25f}, {.4f, .35f, .25f}};
  const auto full = VerifyOnce(*verifier_, {1, 2}, {one, two, one}, q, sampler);
  EXPECT_EQ(full.accepted, 2);
  EXPECT_EQ(full.next, 1);
  EXPECT_EQ(full.kind, round::NextKind::kBonus);
  const auto part = VerifyOnce(*verifier_, {1, 1}, {one, two, one}, q, sampler);
  EXPECT_EQ(part.accepted, 1);
  EXPECT_EQ(part.next, 2);
  EXPECT_EQ(part.kind, round::NextKind::kRecovered);
  const auto plain = VerifyOnce(*verifier_, {}, {two}, {}, sampler);
  EXPECT_EQ(plain.accepted, 0);
  EXPECT_EQ(plain.next, 2);
  EXPECT_EQ(plain.kind, round::NextKind::kPlain);
}

// A ratio of soft distributions at temperature 0 would always accept 0: u < .45 / .40.
TEST_P(AnyVerifier, AtTemperatureZeroDoesNotCompareDistributions) {
  auto sampler = SamplerOf(3, {.temperature = 0, .logit_bias = {}});
  const auto row = sampling::LogitsOf({.45, .55, 0});
  const auto verdict = VerifyOnce(*verifier_, {0}, {row, row}, {{.40f, .35f, .25f}}, sampler);
  EXPECT_EQ(verdict.accepted, 0);
  EXPECT_EQ(verdict.next, 1);
}

TEST_P(AnyVerifier, LeavesTheSamplerAsItFoundIt) {
  const auto row = sampling::LogitsOf({.5, .3, .2});
  auto sampler =
      SamplerOf(3, Own({.repetition_penalty = 1.5f, .presence_penalty = 0.5f, .logit_bias = {}}),
                Noise(4, 4));
  sampler.Push(1);
  const auto look = [&] {
    return std::vector<Token>(sampler.text().begin(), sampler.text().end());
  };
  const auto distribution = [&] {
    std::vector<float> p(3);
    sampler.greedy() ? void(p[0] = static_cast<float>(sampler.Argmax(row.data())))
                     : sampler.Distribution(row.data(), p.data());
    return p;
  };
  const auto text = look();
  const auto before = distribution();
  for (Token a = 0; a < 3; ++a)
    for (Token b = 0; b < 3; ++b) {
      VerifyOnce(*verifier_, {a, b}, {row, row, row}, {}, sampler);
      EXPECT_EQ(look(), text);
      EXPECT_EQ(distribution(), before);
    }
}

// Only its own drafts, rows and noise decide a verdict, not earlier verifications or the scratch.
TEST_P(AnyVerifier, VerifiesARowAloneOrAmongOthersAlike) {
  const auto make = [&](std::uint64_t id) {
    return SamplerOf(64, Own({.top_p = 0.9f, .logit_bias = {}}), Noise(5, id));
  };
  const auto row = sampling::RandomLogits(64, 1), other = sampling::RandomLogits(64, 2);
  const std::vector<float> q(64, 1.0f / 64);
  for (std::uint64_t id = 0; id < 50; ++id) {
    const std::vector<Token> drafts = {static_cast<Token>(id), 5};
    auto alone = make(id), mixed = make(id), mate = make(id + 1000);
    const auto expected = VerifyOnce(*verifier_, drafts, {row, row, row}, {q, q}, alone);
    VerifyOnce(*verifier_, {7}, {other, other}, {}, mate);
    const auto verdict = VerifyOnce(*verifier_, drafts, {row, row, row}, {q, q}, mixed);
    EXPECT_EQ(verdict.accepted, expected.accepted);
    EXPECT_EQ(verdict.next, expected.next);
  }
}

std::string TestName(const testing::TestParamInfo<std::string_view>& strategy) {
  std::string name(strategy.param);
  std::erase(name, '-');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Registry, AnyVerifier, testing::ValuesIn(VerifierNames()), TestName);
INSTANTIATE_TEST_SUITE_P(Registry, LosslessVerifier, testing::ValuesIn(LosslessNames()), TestName);

TEST(Registry, KnowsWhichStrategiesKeepTheDistribution) {
  EXPECT_EQ(LosslessNames(), (std::vector<std::string_view>{"greedy", "residual", "sample-match",
                                                            "target-probability", "block"}));
  EXPECT_FALSE(VerifierNamed("residual", {.acceptance_threshold = 0.1f})->Lossless());
  EXPECT_FALSE(VerifierNamed("residual", {.skip_sample_adjustment = true})->Lossless());
}

TEST(Registry, VerifiersAreWhatTheirRowsSay) {
  for (const VerifierSpec* row : Strategies()) {
    const auto verifier = row->make({});
    EXPECT_EQ(verifier->name(), row->info.name);
    EXPECT_EQ(verifier->Lossless(), row->info.lossless) << row->info.name;
    for (const std::string_view text :
         {row->info.help, row->info.accepts_if, row->info.else_takes, row->info.random_numbers})
      EXPECT_NE(text, "") << row->info.name;
  }
}

TEST(Registry, ConstantsAreTheRowsOfTheirNames) {
  for (const VerifyStrategy strategy :
       {VerifyStrategy::kGreedy, VerifyStrategy::kResidual, VerifyStrategy::kSampleMatch,
        VerifyStrategy::kTypicalAcceptance, VerifyStrategy::kTargetProbability,
        VerifyStrategy::kLogitComparison, VerifyStrategy::kBlock, VerifyStrategy::kRelaxed})
    EXPECT_EQ(VerifyStrategy::Named(strategy.name()), strategy) << strategy.name();
  EXPECT_EQ(VerifyStrategy::Named("auto"), VerifyStrategy::kAuto);
  EXPECT_EQ(VerifyStrategy::Named("standard"), VerifyStrategy::kResidual);
  EXPECT_EQ(VerifyStrategy::Named("lucky"), std::nullopt);
}

TEST(Registry, NoNameIsTakenTwice) {
  std::set<std::string_view> names = {"auto"};
  for (const StrategyInfo* row : AllStrategies()) {
    EXPECT_TRUE(names.insert(row->name).second) << row->name;
    for (const std::string_view alias : row->aliases)
      EXPECT_TRUE(names.insert(alias).second) << alias;
  }
}

}  // namespace
}  // namespace foretoken::verify
