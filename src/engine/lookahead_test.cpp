// SPDX-License-Identifier: Apache-2.0
#include "engine/lookahead.h"

#include <gtest/gtest.h>

namespace foretoken::engine {
namespace {

// One sequence with one drafter that could draft as much as it is asked for.
class Alone {
 public:
  explicit Alone(std::string_view name, int ceiling, const AdaptiveLookaheadConfig& ewma = {})
      : lookahead_(MakeLookahead({.name = name, .ewma = ewma, .costs = &costs_})) {
    lookahead_->Begin(0, ceiling);
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
  std::unique_ptr<Lookahead> lookahead_;
};

TEST(Lookahead, NeverGoesBeyondItsCeilingOrBelowOne) {
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

TEST(Lookahead, FixedStays) {
  Alone l("fixed", 7);
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(l.Next(), 7);
    l.Observe(7, step % 8);
  }
}

TEST(Lookahead, EwmaFollowsTheMean) {
  Alone l("ewma", 12);
  EXPECT_EQ(l.Next(), 5);
  for (int step = 0; step < 35; ++step) l.Observe(l.Next(), l.Next());
  EXPECT_EQ(l.Next(), 12);
  for (int step = 0; step < 60; ++step) l.Observe(l.Next(), 0);
  EXPECT_EQ(l.Next(), 2);
}

TEST(Lookahead, EwmaTakesItsOwnSettings) {
  Alone l("ewma", 12, {.initial = 3, .min = 1, .max = 4, .alpha = 1, .cooldown_steps = 0});
  EXPECT_EQ(l.Next(), 3);
  l.Observe(3, 3);
  EXPECT_EQ(l.Next(), 4);
  l.Observe(4, 0);
  EXPECT_EQ(l.Next(), 1);
}

TEST(Lookahead, HeuristicAddsTwoAndTakesOne) {
  Alone l("heuristic", 8);
  EXPECT_EQ(l.Next(), 4);
  l.Observe(4, 4);
  EXPECT_EQ(l.Next(), 6);
  l.Observe(6, 5);
  EXPECT_EQ(l.Next(), 5);
  // A draft that was cut short and accepted whole counts as whole.
  l.Observe(2, 2);
  EXPECT_EQ(l.Next(), 7);
  for (int step = 0; step < 20; ++step) l.Observe(l.Next(), 0);
  EXPECT_EQ(l.Next(), 1);
}

TEST(Lookahead, BatchSizeReadsItsTable) {
  const std::vector<BatchDraftLength> table = {{1, 2, 6}, {3, 4, 2}, {5, 8, 0}};
  const auto l = MakeLookahead({.name = "batch-size", .max_sequences = 9, .batch_sizes = table});
  const Offer offer{.most = 64};
  for (const auto& [n, k] : {std::pair{1, 6}, {2, 6}, {3, 2}, {4, 2}, {5, 0}, {8, 0}, {9, 7}}) {
    std::vector<Plan> plans;
    for (SeqId seq = 0; seq < n; ++seq) {
      l->Begin(seq, 7);
      plans.push_back({.seq = seq, .offers = {&offer, 1}});
    }
    l->Choose(plans);
    for (const Plan& plan : plans) EXPECT_EQ(plan.k, k) << n;
  }
}

TEST(Lookahead, TakesTheFirstOfferThatHasDrafts) {
  const auto l = MakeLookahead({.name = "fixed", .n_drafters = 3});
  l->Begin(0, 4);
  const std::vector<Offer> offers = {{.drafter = 0, .most = 0, .made = true},
                                     {.drafter = 1, .most = 3, .made = true},
                                     {.drafter = 2, .most = 9}};
  Plan plan{.offers = offers};
  l->Choose({&plan, 1});
  EXPECT_EQ(plan.chosen, 1);
  EXPECT_EQ(plan.k, 3);
}

TEST(Lookahead, LeavesSequencesWithoutOffersAlone) {
  RoundCosts costs(65, 1);
  for (const std::string_view name : LookaheadNames()) {
    const auto l = MakeLookahead({.name = name, .costs = &costs});
    Plan plan{.k = 5};
    l->Choose({&plan, 1});
    EXPECT_EQ(plan.k, 0) << name;
  }
}

}  // namespace
}  // namespace foretoken::engine
