// SPDX-License-Identifier: Apache-2.0
#include "draft/custom_drafter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <stdexcept>

#include "kernels/dispatch.h"
#include "sampling/sampler.h"

namespace foretoken::draft {
namespace {

constexpr int kCustomVocabulary = 6;

using Rule = std::function<void(DraftProposal&)>;

class Own final : public foretoken::Drafter {
 public:
  Own(Rule rule, bool distributions) : rule_(std::move(rule)), distributions_(distributions) {}
  std::string_view name() const override { return "own"; }
  bool ReportsDistributions() const override { return distributions_; }
  void Begin(const DrafterText& request) override { begun.push_back(request.sequence); }
  void Propose(int, DraftProposal& proposal) override { rule_(proposal); }
  void Observe(const DrafterRound& round) override {
    if (throws) throw std::runtime_error("no");
    seen.insert(seen.end(), round.committed.begin(), round.committed.end());
    accepted += round.accepted;
  }
  void End(int sequence) override { ended.push_back(sequence); }

  std::vector<int> begun, ended;
  std::vector<Token> seen;
  int accepted = 0;
  bool throws = false;

 private:
  Rule rule_;
  bool distributions_;
};

struct CustomBench {
  std::shared_ptr<Own> own;
  std::vector<std::string> faults;
  std::unique_ptr<CustomDrafter> drafter;

  explicit CustomBench(Rule rule, bool distributions = false)
      : own(std::make_shared<Own>(std::move(rule), distributions)) {
    drafter = std::make_unique<CustomDrafter>(
        own, CustomSettings{.max_sequences = 2,
                            .vocabulary = kCustomVocabulary,
                            .max_draft = 8,
                            .kernels = &kernels::KernelsFor(kernels::AvailableIsas().back()),
                            .on_fault = [this](std::string what) { faults.push_back(what); }});
  }
  void Start(float temperature = 1, std::uint64_t seed = 0, float p_min = 0,
             Stream stream = Stream::kDraft) {
    const std::vector<Token> prompt = {1, 2}, end_tokens = {5};
    drafter->Begin({.seq = 1,
                    .prompt = prompt,
                    .max_new_tokens = 40,
                    .sampling = {.temperature = temperature},
                    .end_tokens = end_tokens,
                    .noise = Noise(seed, 0),
                    .stream = stream,
                    .draft_p_min = p_min});
  }
  round::Proposal Ask(int n) {
    const draft::Ask ask{1, n};
    round::Proposal proposal;
    drafter->Propose({&ask, 1}, {&proposal, 1});
    return proposal;
  }
  std::vector<Token> Tokens(int n) {
    const auto proposal = Ask(n);
    return {proposal.tokens.begin(), proposal.tokens.end()};
  }
};

TEST(CustomDrafter, GivesTheProgramsDraftsAndTellsItWhatWasCommitted) {
  CustomBench bench([](DraftProposal& p) {
    while (p.left() > 0) p.Push((p.text().back() + 1) % 5);
  });
  bench.Start();
  EXPECT_EQ(bench.Tokens(3), (std::vector<Token>{3, 4, 0}));
  const std::vector<Token> committed = {3, 1};
  const Observation observation{.seq = 1, .committed = committed, .drafted = 3, .accepted = 1};
  bench.drafter->Observe({&observation, 1});
  EXPECT_EQ(bench.Tokens(2), (std::vector<Token>{2, 3}));
  EXPECT_TRUE(bench.Tokens(0).empty());
  bench.drafter->End(1);
  EXPECT_EQ(bench.own->begun, std::vector<int>{1});
  EXPECT_EQ(bench.own->ended, std::vector<int>{1});
  EXPECT_EQ(bench.own->seen, committed);
  EXPECT_EQ(bench.own->accepted, 1);
  EXPECT_TRUE(bench.faults.empty());
}

TEST(CustomDrafter, ADraftEndsWithAnEndTokenAndBeforeAnUnknownOne) {
  CustomBench end([](DraftProposal& p) {
    EXPECT_TRUE(p.Push(0));
    EXPECT_TRUE(p.Push(5));
    EXPECT_EQ(p.left(), 0);
    EXPECT_FALSE(p.Push(1));
  });
  end.Start();
  EXPECT_EQ(end.Tokens(4), (std::vector<Token>{0, 5}));
  for (const Token unknown : {-1, kCustomVocabulary, 1 << 30}) {
    CustomBench bench([unknown](DraftProposal& p) {
      p.Push(4);
      EXPECT_FALSE(p.Push(unknown));
      EXPECT_FALSE(p.Push(3));
    });
    bench.Start();
    for (int time = 0; time < 3; ++time) EXPECT_EQ(bench.Tokens(4), std::vector<Token>{4});
    ASSERT_EQ(bench.faults.size(), 1u);  // reported once, counted each time
    EXPECT_NE(bench.faults[0].find(std::to_string(unknown)), std::string::npos) << bench.faults[0];
    EXPECT_EQ(bench.drafter->faults(), 3);
  }
}

TEST(CustomDrafter, NeverTakesMoreDraftsThanThereIsRoomFor) {
  CustomBench bench([](DraftProposal& p) {
    for (int i = 0; i < 1000; ++i) p.Push(1);
  });
  bench.Start();
  EXPECT_EQ(bench.Tokens(3).size(), 3u);
  EXPECT_EQ(bench.Tokens(1 << 20).size(), 8u);
  EXPECT_TRUE(bench.faults.empty());
}

const std::vector<float> kDistribution = {.1f, .2f, .3f, .4f, 0, 0};

TEST(CustomDrafter, DrawsFromTheDistributionThatItReports) {
  std::vector<double> counts(kCustomVocabulary);
  CustomBench bench([](DraftProposal& p) { p.Draw(kDistribution); }, true);
  constexpr int kDraws = 20000;
  for (int seed = 0; seed < kDraws; ++seed) {
    bench.Start(1, static_cast<std::uint64_t>(seed));
    const auto proposal = bench.Ask(4);
    ASSERT_EQ(proposal.length(), 1);
    for (std::size_t i = 0; i < kDistribution.size(); ++i)
      ASSERT_NEAR(proposal.Distribution(0)[i], kDistribution[i], 1e-6f);
    ++counts[static_cast<std::size_t>(proposal.tokens[0])];
  }
  double right = 0, wrong = 0;  // chi-square, of 3 degrees of freedom
  for (std::size_t i = 0; i < 4; ++i) {
    const double expected = kDraws * static_cast<double>(kDistribution[i]), even = kDraws / 4.0;
    right += std::pow(counts[i] - expected, 2) / expected;
    wrong += std::pow(counts[i] - even, 2) / even;
  }
  EXPECT_LT(right, 25);
  EXPECT_GT(wrong, 100);  // the control: the test can fail
  EXPECT_EQ(counts[4] + counts[5], 0);
}

// With the target's noise a draft is the winner of the target's own race over the distribution that
// was given, so equal distributions give equal tokens. Other noise gives other tokens.
TEST(CustomDrafter, SharesTheTargetsRaceWhereItsNoiseIsShared) {
  const auto& kernels = kernels::KernelsFor(kernels::AvailableIsas().back());
  CustomBench bench([](DraftProposal& p) { p.Draw(kDistribution); }, true);
  int others = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    bench.Start(1, seed, 0, Stream::kTarget);
    const auto want =
        sampling::DrawByRace(kDistribution.data(), kCustomVocabulary, Noise(seed, 0), 2, kernels);
    const auto proposal = bench.Ask(1);
    ASSERT_EQ(proposal.tokens[0], want);
    ASSERT_TRUE(std::equal(kDistribution.begin(), kDistribution.end(), proposal.q));
    bench.Start(1, seed);
    others += bench.Tokens(1)[0] != want;
  }
  EXPECT_GT(others, 250);
}

TEST(CustomDrafter, KeepsCopiesOfDistributionsAndOneHotOnesOfCertainDraftsAmongThem) {
  CustomBench bench(
      [](DraftProposal& p) {
        p.Push(4);
        std::vector<float> distribution = kDistribution;
        p.Draw(distribution);
        distribution.assign(distribution.size(), -1);
      },
      true);
  bench.Start();
  const auto proposal = bench.Ask(4);
  ASSERT_EQ(proposal.length(), 2);
  for (int i = 0; i < kCustomVocabulary; ++i) {
    EXPECT_EQ(proposal.Distribution(0)[i], i == 4 ? 1.0f : 0.0f);
    EXPECT_NEAR(proposal.Distribution(1)[i], kDistribution[static_cast<std::size_t>(i)], 1e-6f);
  }
}

TEST(CustomDrafter, AtTemperatureZeroADrawIsTheMostProbableTokenAndCertain) {
  CustomBench bench(
      [](DraftProposal& p) {
        while (p.left() > 0) p.Draw(kDistribution);
      },
      true);
  bench.Start(0);
  const auto proposal = bench.Ask(2);
  EXPECT_EQ(std::vector<Token>(proposal.tokens.begin(), proposal.tokens.end()),
            (std::vector<Token>{3, 3}));
  EXPECT_EQ(proposal.q, nullptr);
}

TEST(CustomDrafter, StopsBeforeADistributionBelowTheLeastProbability) {
  CustomBench bench([](DraftProposal& p) { EXPECT_EQ(p.Draw(kDistribution), kNoToken); }, true);
  bench.Start(1, 0, 0.5f);
  EXPECT_TRUE(bench.Tokens(4).empty());
  EXPECT_TRUE(bench.faults.empty());
}

TEST(CustomDrafter, ADraftEndsBeforeADistributionThatIsNone) {
  const std::vector<std::vector<float>> distributions = {{},
                                                         {.5f, .5f},
                                                         {.5f, .5f, .5f, 0, 0, 0},
                                                         {1.5f, -.5f, 0, 0, 0, 0},
                                                         {NAN, 1, 0, 0, 0, 0},
                                                         {INFINITY, 0, 0, 0, 0, 0},
                                                         {0, 0, 0, 0, 0, 0},
                                                         {1, 0, 0, 0, 0, 0, 0}};
  for (const auto& distribution : distributions) {
    CustomBench bench(
        [&](DraftProposal& p) {
          p.Draw(kDistribution);
          EXPECT_EQ(p.Draw(distribution), kNoToken);
          EXPECT_EQ(p.Draw(kDistribution), kNoToken);
        },
        true);
    bench.Start();
    EXPECT_EQ(bench.Tokens(4).size(), 1u);
    EXPECT_EQ(bench.faults.size(), 1u);
  }
}

TEST(CustomDrafter, ADistributionFromADrafterThatReportsNoneIsRefused) {
  CustomBench bench([](DraftProposal& p) { EXPECT_EQ(p.Draw(kDistribution), kNoToken); });
  bench.Start();
  EXPECT_TRUE(bench.Tokens(4).empty());
  ASSERT_EQ(bench.faults.size(), 1u);
  EXPECT_NE(bench.faults[0].find("ReportsDistributions"), std::string::npos);
}

TEST(CustomDrafter, AnExceptionKeepsTheDraftsBeforeItAndIsToldOnce) {
  CustomBench bench([](DraftProposal& p) {
    p.Push(2);
    throw std::runtime_error("out of ideas");
  });
  bench.Start();
  EXPECT_EQ(bench.Tokens(4), std::vector<Token>{2});
  EXPECT_EQ(bench.Tokens(4), std::vector<Token>{2});
  bench.own->throws = true;
  const std::vector<Token> committed = {2};
  const Observation observation{.seq = 1, .committed = committed};
  bench.drafter->Observe({&observation, 1});
  ASSERT_EQ(bench.faults.size(), 1u);
  EXPECT_NE(bench.faults[0].find("out of ideas"), std::string::npos);
  EXPECT_EQ(bench.drafter->faults(), 3);
}

}  // namespace
}  // namespace foretoken::draft
