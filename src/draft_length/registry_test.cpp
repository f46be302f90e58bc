// SPDX-License-Identifier: Apache-2.0
#include "draft_length/registry.h"

#include <gtest/gtest.h>

namespace foretoken::draft_length {
namespace {

// One sequence, and one drafter that can draft as many tokens as it is asked for.
class Alone {
 public:
  explicit Alone(std::string_view name, int ceiling,
                 const AdaptiveLookaheadConfig& adaptive_lookahead = {})
      : lookahead_(MakeController(
            {.name = name, .adaptive_lookahead = adaptive_lookahead, .costs = &costs_})) {
    lookahead_->Begin(0, {.most = ceiling});
  }
  int Next() {
    const Offer offer{.most = 64};
    Plan plan{.offers = {&offer, 1}};
    lookahead_->Choose({&plan, 1});
    EXPECT_EQ(plan.k, lookahead_->Most(0, 1));
    return plan.k;
  }
  void Observe(int drafted, int accepted) {
    lookahead_->Observe(0, {.drafted = drafted, .accepted = accepted});
  }

 private:
  RoundCosts costs_{65, 1};
  std::unique_ptr<Controller> lookahead_;
};

TEST(Controller, NeverGoesBeyondItsCeilingOrBelowOne) {
  for (const std::string_view name : {"fixed", "ewma", "heuristic", "batch-size"})
    for (const int ceiling : {1, 2, 3, 8, 64}) {
      Alone l(name, ceiling);
      for (int step = 0; step < 200; ++step) {
        const int k = l.Next();
        ASSERT_GE(k, 1) << name << " " << ceiling;
        ASSERT_LE(k, ceiling) << name << " " << ceiling;
        l.Observe(k, step % 80 < 40 ? k : 0);
      }
    }
}

// A round drafts nothing, or as many tokens as are worth a wider pass.
TEST(Controller, DraftsNothingOrItsLeastNumber) {
  for (const std::string_view name : {"fixed", "ewma", "heuristic"}) {
    const auto l = MakeController({.name = name, .n_drafters = 2});
    l->Begin(0, {.least = 4, .most = 7});
    for (int step = 0; step < 60; ++step) {
      EXPECT_GE(l->Most(0, 1), 4) << name;
      // The first drafter has too few drafts.
      const std::vector<Offer> offers = {{.drafter = 0, .most = 3, .made = true},
                                         {.drafter = 1, .most = step % 3 == 0 ? 3 : 64}};
      Plan plan{.offers = offers};
      l->Choose({&plan, 1});
      if (step % 3 == 0) {
        EXPECT_EQ(plan.k, 0) << name;
      } else {
        EXPECT_EQ(plan.chosen, 1) << name;
        EXPECT_GE(plan.k, 4) << name;
      }
      l->Observe(0, {.drafter = 1, .drafted = plan.k, .accepted = 0});
    }
  }
}

TEST(Controller, CountsDraftsThatWereTooShortToBeSentAsRejected) {
  for (const std::string_view name : {"ewma", "heuristic"}) {
    const auto l = MakeController({.name = name});
    l->Begin(0, {.least = 2, .most = 8});
    for (int step = 0; step < 40; ++step) l->Observe(0, {.withheld = 1});
    EXPECT_EQ(l->Most(0, 1), 2) << name;
  }
}

// Copied passages are long. Where rows are cheap, the default lets a round draft more than 8
// tokens.
TEST(Controller, DraftsLongCopiesWholeByDefault) {
  for (const double row_us : {10.0, 400.0}) {
    RoundCosts costs(65, 1);
    costs.Start(std::vector<PassCost>{{1, 0, {1000, 0, 0}}, {17, 0, {1000 + 16 * row_us, 0, 0}}});
    const auto l = MakeController({.name = SpeculativeOptions().controller, .costs = &costs});
    l->Begin(0, {.most = DefaultCeiling({})});
    int k = 0;
    for (int round = 0; round < 100; ++round) {
      const Offer offer{.most = l->Most(0, 1), .made = true, .evidence = 3};
      Plan plan{.offers = {&offer, 1}};
      l->Choose({&plan, 1});
      k = plan.k;
      l->Observe(0, {.evidence = 3, .drafted = k, .accepted = k, .us = 1000});
    }
    if (row_us < 100)
      EXPECT_GT(k, 8);
    else
      EXPECT_GT(k, 0);
  }
}

TEST(Controller, FixedStays) {
  Alone l("fixed", 7);
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(l.Next(), 7);
    l.Observe(7, step % 8);
  }
}

TEST(Controller, EwmaFollowsTheMean) {
  Alone l("ewma", 12);
  EXPECT_EQ(l.Next(), 5);
  for (int step = 0; step < 35; ++step) l.Observe(l.Next(), l.Next());
  EXPECT_EQ(l.Next(), 12);
  for (int step = 0; step < 60; ++step) l.Observe(l.Next(), 0);
  EXPECT_EQ(l.Next(), 2);
}

TEST(Controller, EwmaTakesItsOwnSettings) {
  Alone l("ewma", 12, {.initial = 3, .min = 1, .max = 4, .alpha = 1, .cooldown_steps = 0});
  EXPECT_EQ(l.Next(), 3);
  l.Observe(3, 3);
  EXPECT_EQ(l.Next(), 4);
  l.Observe(4, 0);
  EXPECT_EQ(l.Next(), 1);
}

TEST(Controller, HeuristicAddsTwoAndTakesOne) {
  Alone l("heuristic", 8);
  EXPECT_EQ(l.Next(), 4);
  l.Observe(4, 4);
  EXPECT_EQ(l.Next(), 6);
  l.Observe(6, 5);
  EXPECT_EQ(l.Next(), 5);
  // A draft that was cut short and fully accepted counts as fully accepted.
  l.Observe(2, 2);
  EXPECT_EQ(l.Next(), 7);
  for (int step = 0; step < 20; ++step) l.Observe(l.Next(), 0);
  EXPECT_EQ(l.Next(), 1);
}

TEST(Controller, BatchSizeReadsItsTable) {
  const std::vector<BatchDraftLength> table = {{1, 2, 6}, {3, 4, 2}, {5, 8, 0}};
  const auto l = MakeController({.name = "batch-size", .max_sequences = 9, .batch_sizes = table});
  const Offer offer{.most = 64};
  for (const auto& [n, k] : {std::pair{1, 6}, {2, 6}, {3, 2}, {4, 2}, {5, 0}, {8, 0}, {9, 7}}) {
    std::vector<Plan> plans;
    for (SeqId seq = 0; seq < n; ++seq) {
      l->Begin(seq, {.most = 7});
      plans.push_back({.seq = seq, .offers = {&offer, 1}});
    }
    l->Choose(plans);
    for (const Plan& plan : plans) EXPECT_EQ(plan.k, k) << n;
  }
}

TEST(Controller, TakesTheFirstOfferThatHasDrafts) {
  const auto l = MakeController({.name = "fixed", .n_drafters = 3});
  l->Begin(0, {.most = 4});
  const std::vector<Offer> offers = {{.drafter = 0, .most = 0, .made = true},
                                     {.drafter = 1, .most = 3, .made = true},
                                     {.drafter = 2, .most = 9}};
  Plan plan{.offers = offers};
  l->Choose({&plan, 1});
  EXPECT_EQ(plan.chosen, 1);
  EXPECT_EQ(plan.k, 3);
}

TEST(Controller, LeavesSequencesWithoutOffersAlone) {
  RoundCosts costs(65, 1), fixed(65, 1);
  for (const std::string_view name : NamesOf(AllControllers())) {
    const auto l = MakeController({.name = name, .costs = &costs, .fixed_costs = &fixed});
    Plan plan{.k = 5};
    l->Choose({&plan, 1});
    EXPECT_EQ(plan.k, 0) << name;
  }
}

}  // namespace
}  // namespace foretoken::draft_length
