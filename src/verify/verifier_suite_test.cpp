// SPDX-License-Identifier: Apache-2.0
// Every strategy of the registry that calls itself lossless is held to these.
#include <gtest/gtest.h>

#include <cstdio>

#include "verify/judge_testing.h"

namespace foretoken::verify {
namespace {

constexpr int kVocabulary = 1024;
constexpr double kBound = 30;       // 5 degrees of freedom: p = 1.5e-5
constexpr double kPairsBound = 80;  // 35 degrees of freedom: p = 2e-5

struct Case {
  const char* name;
  SamplingParameters parameters;
};

std::vector<Case> Laws() {
  return {{"plain", {}},
          {"top_p .8", {.top_p = 0.8f, .logit_bias = {}}},
          {"top_k 4", {.top_k = 4, .logit_bias = {}}},
          {"T .7", {.temperature = 0.7f, .logit_bias = {}}},
          {"T .8", {.temperature = 0.8f, .logit_bias = {}}},
          {"T 1.5, min_p .1", {.temperature = 1.5f, .min_p = 0.1f, .logit_bias = {}}},
          {"penalties",
           {.repetition_penalty = 1.5f,
            .frequency_penalty = 0.3f,
            .presence_penalty = 0.6f,
            .logit_bias = {{2, 0.5f}}}}};
}

std::vector<std::pair<const char*, Drafts>> ManyDrafts(int vocabulary) {
  return {{"uniform", UniformOverHead(vocabulary)},
          {"far", FarFromTheTarget(vocabulary)},
          {"peaked", PeakedAtTwo(vocabulary)},
          {"certain", {}}};
}

class LosslessVerifier : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    verifier_ = MakeVerifier(GetParam()).value();
    if (!verifier_->Lossless()) GTEST_SKIP();
  }
  // `greedy` is for temperature 0 alone.
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

// The law of the token after `text`, whose last `n` tokens are generated.
std::vector<double> Expected(const Experiment& e, std::vector<Token> text, int n) {
  const auto row = e.RowAfter(text.back());
  return sampling::ReferenceLaw(
      sampling::ReferenceEdits(row, e.parameters, text, static_cast<int>(text.size()) - n, {}),
      e.parameters);
}

TEST_P(LosslessVerifier, CommitsTheLawOfPlainDecoding) {
  for (const auto& law : Laws())
    for (const auto& [drafts_name, drafts] : ManyDrafts(kVocabulary)) {
      const Experiment e{.parameters = Own(law.parameters),
                         .logits = sampling::LogitsOf(HeadAndTail(kVocabulary)),
                         .drafts = drafts,
                         .rounds = Rounds()};
      const double chi = sampling::ChiSquare(Play(e, JudgeOf(*verifier_)).committed[0],
                                             Buckets(Expected(e, e.prompt, 0)));
      Report(std::string(law.name) + ", " + drafts_name, chi);
      EXPECT_LT(chi, kBound) << law.name << ", drafts " << drafts_name;
    }
}

// The second row's law depends on the first token and, with penalties, on the drafts before it.
TEST_P(LosslessVerifier, CommitsTheJointLawOfTwoTokens) {
  constexpr int kSmall = 64;
  for (const auto& law : {Laws()[0], Laws()[1], Laws()[5]})
    for (const auto& [drafts_name, drafts] : {ManyDrafts(kSmall)[2], ManyDrafts(kSmall)[3]}) {
      const Experiment e{.parameters = Own(law.parameters),
                         .logits = sampling::LogitsOf(HeadAndTail(kSmall)),
                         .drafts = drafts,
                         .n_drafts = 2,
                         .rounds = Rounds(),
                         .rows_depend_on_text = true};
      const auto first = Expected(e, e.prompt, 0);
      std::vector<double> joint((kHead + 1) * (kHead + 1));
      for (Token t = 0; t < kSmall; ++t) {
        auto text = e.prompt;
        text.push_back(t);
        const auto second = Buckets(Expected(e, text, 1));
        for (std::size_t b = 0; b <= kHead; ++b)
          joint[BucketOf(t) * (kHead + 1) + b] += first[static_cast<std::size_t>(t)] * second[b];
      }
      const double chi = sampling::ChiSquare(Play(e, JudgeOf(*verifier_)).pairs, joint);
      Report(std::string("pairs, ") + law.name + ", " + drafts_name, chi);
      EXPECT_LT(chi, kPairsBound) << law.name << ", drafts " << drafts_name;
    }
}

TEST_P(LosslessVerifier, DrawsBonusTokensFromTheProcessedLaw) {
  Experiment e{.parameters = Own({.temperature = 0.8f, .top_k = 4, .logit_bias = {}}),
               .logits = sampling::LogitsOf(HeadAndTail(kVocabulary)),
               .drafts = UniformOverHead(kVocabulary)};
  const auto tally = Play(e, JudgeOf(*verifier_));
  const double chi = sampling::ChiSquare(tally.bonus, Buckets(Expected(e, e.prompt, 0)));
  Report("bonus", chi);
  EXPECT_GT(tally.accepted, 1000);
  EXPECT_LT(chi, kBound);
}

TEST_P(LosslessVerifier, NeverCommitsATokenOutsideTheNucleus) {
  const Experiment e{.parameters = Own({.top_p = 0.5f, .logit_bias = {}}),
                     .logits = sampling::LogitsOf({.85, .10, .029, .01, .01, .001}),
                     .drafts = UniformOverHead(6),
                     .n_drafts = 3,
                     .rounds = 5000};
  const auto tally = Play(e, JudgeOf(*verifier_));
  EXPECT_EQ(tally.committed[0][0], 5000);
  EXPECT_EQ(tally.committed[1][0], 5000);
  EXPECT_EQ(tally.bonus[0] + tally.recovered[0], 5000);
  EXPECT_GT(tally.accepted, 500);
}

TEST_P(LosslessVerifier, NeverCommitsTheRestOfAPaddedVocabulary) {
  auto logits = sampling::LogitsOf({.3, .3, .4, 0, 0, 0});  // log 0 = -inf
  for (const auto& drafts : {FarFromTheTarget(6), UniformOverHead(6), Drafts{}}) {
    const Experiment e{
        .parameters = Own({}), .logits = logits, .drafts = drafts, .n_drafts = 2, .rounds = 5000};
    const auto tally = Play(e, JudgeOf(*verifier_));
    for (const auto& seen : {tally.committed[0], tally.committed[1], tally.bonus, tally.recovered})
      EXPECT_EQ(seen[3] + seen[4] + seen[5], 0);
  }
}

TEST_P(LosslessVerifier, RejectsADraftThatIsNotInTheVocabulary) {
  const std::vector<float> row = sampling::LogitsOf({.5, .3, .2});
  for (const float temperature : {0.0f, 1.0f}) {
    sampling::Sampler sampler({.parameters = Own({.temperature = temperature, .logit_bias = {}}),
                               .end_tokens = {},
                               .noise = {}},
                              3, sampling::BestKernels());
    sampler.Begin(std::vector<Token>{0}, 4);
    const auto verdict = JudgeOnce(*verifier_, {77}, {row, row}, {}, sampler);
    EXPECT_EQ(verdict.accepted, 0);
    EXPECT_TRUE(verdict.next >= 0 && verdict.next < 3);
  }
}

TEST_P(LosslessVerifier, AtTemperatureZeroAcceptsWhatTheTargetWouldSay) {
  sampling::Sampler sampler(
      {.parameters = {.temperature = 0, .logit_bias = {}}, .end_tokens = {}, .noise = {}}, 3,
      sampling::BestKernels());
  sampler.Begin(std::vector<Token>{0}, 4);
  const std::vector<float> one = {0, 2, 2}, two = {0, 1, 2};  // of equals the lowest id
  const std::vector<std::vector<float>> q = {{.4f, .35f, .25f}, {.4f, .35f, .25f}};
  const auto full = JudgeOnce(*verifier_, {1, 2}, {one, two, one}, q, sampler);
  EXPECT_EQ(full.accepted, 2);
  EXPECT_EQ(full.next, 1);
  EXPECT_EQ(full.kind, round::NextKind::kBonus);
  const auto part = JudgeOnce(*verifier_, {1, 1}, {one, two, one}, q, sampler);
  EXPECT_EQ(part.accepted, 1);
  EXPECT_EQ(part.next, 2);
  EXPECT_EQ(part.kind, round::NextKind::kRecovered);
  const auto plain = JudgeOnce(*verifier_, {}, {two}, {}, sampler);
  EXPECT_EQ(plain.accepted, 0);
  EXPECT_EQ(plain.next, 2);
  EXPECT_EQ(plain.kind, round::NextKind::kPlain);
}

// A ratio of soft laws at temperature 0 would accept 0 always: u < .45 / .40.
TEST_P(LosslessVerifier, AtTemperatureZeroDoesNotCompareLaws) {
  sampling::Sampler sampler(
      {.parameters = {.temperature = 0, .logit_bias = {}}, .end_tokens = {}, .noise = {}}, 3,
      sampling::BestKernels());
  sampler.Begin(std::vector<Token>{0}, 4);
  const auto row = sampling::LogitsOf({.45, .55, 0});
  const auto verdict = JudgeOnce(*verifier_, {0}, {row, row}, {{.40f, .35f, .25f}}, sampler);
  EXPECT_EQ(verdict.accepted, 0);
  EXPECT_EQ(verdict.next, 1);
}

TEST_P(LosslessVerifier, LeavesTheSamplerAsItFoundIt) {
  const auto row = sampling::LogitsOf({.5, .3, .2});
  sampling::Sampler sampler(
      {.parameters = Own({.repetition_penalty = 1.5f, .presence_penalty = 0.5f, .logit_bias = {}}),
       .end_tokens = {},
       .noise = Noise(4, 4)},
      3, sampling::BestKernels());
  sampler.Begin(std::vector<Token>{0}, 6);
  sampler.Push(1);
  const auto look = [&] {
    return std::vector<Token>(sampler.text().begin(), sampler.text().end());
  };
  const auto law = [&] {
    std::vector<float> p(3);
    sampler.greedy() ? void(p[0] = static_cast<float>(sampler.Argmax(row.data())))
                     : sampler.Law(row.data(), p.data());
    return p;
  };
  const auto text = look();
  const auto before = law();
  for (Token a = 0; a < 3; ++a)
    for (Token b = 0; b < 3; ++b) {
      JudgeOnce(*verifier_, {a, b}, {row, row, row}, {}, sampler);
      EXPECT_EQ(look(), text);
      EXPECT_EQ(law(), before);
    }
}

// Nothing but its own drafts, rows and noise decides a verdict: neither what was judged before nor
// the scratch.
TEST_P(LosslessVerifier, JudgesARowAloneOrAmongOthersAlike) {
  const auto make = [&](std::uint64_t id) {
    sampling::Sampler sampler({.parameters = Own({.top_p = 0.9f, .logit_bias = {}}),
                               .end_tokens = {},
                               .noise = Noise(5, id)},
                              64, sampling::BestKernels());
    sampler.Begin(std::vector<Token>{0, 1}, 8);
    return sampler;
  };
  const auto row = sampling::RandomLogits(64, 1), other = sampling::RandomLogits(64, 2);
  const std::vector<float> q(64, 1.0f / 64);
  for (std::uint64_t id = 0; id < 50; ++id) {
    const std::vector<Token> drafts = {static_cast<Token>(id), 5};
    auto alone = make(id), mixed = make(id), mate = make(id + 1000);
    const auto expected = JudgeOnce(*verifier_, drafts, {row, row, row}, {q, q}, alone);
    JudgeOnce(*verifier_, {7}, {other, other}, {}, mate);
    const auto verdict = JudgeOnce(*verifier_, drafts, {row, row, row}, {q, q}, mixed);
    EXPECT_EQ(verdict.accepted, expected.accepted);
    EXPECT_EQ(verdict.next, expected.next);
  }
}

INSTANTIATE_TEST_SUITE_P(Registry, LosslessVerifier, testing::ValuesIn(VerifierNames()),
                         [](const auto& strategy) {
                           std::string name(strategy.param);
                           std::erase(name, '-');
                           return name;
                         });

TEST(MakeVerifier, NamesTheChoicesWhenThereIsNoSuchStrategy) {
  const auto verifier = MakeVerifier("lucky");
  ASSERT_FALSE(verifier);
  EXPECT_EQ(verifier.error().message,
            "verify: strategy 'lucky' does not exist; use greedy, residual, sample-match");
}

}  // namespace
}  // namespace foretoken::verify
