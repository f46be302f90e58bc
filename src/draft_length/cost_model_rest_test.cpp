// SPDX-License-Identifier: Apache-2.0
// When the cost model plans, and when it rests from planning.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "draft_length/cost_model.h"

namespace foretoken::draft_length {
namespace {

// Plays 1,000 rounds whose pass takes 300 us and whose drafts are all rejected, and counts those that
// were planned. made: a lookup makes the drafts; otherwise a model would have to.
int RoundsWithAPlan(bool made) {
  RoundCosts costs(17, 1);
  const std::vector<PassCost> passes = {
      {1, 0, {300, 0, 0}}, {2, 0, {500, 0, 0}}, {17, 0, {3500, 0, 0}}};
  costs.Start(passes);
  costs.StartDrafter(0, 60, 0, 0);
  CostModel model({.name = "cost-model", .costs = &costs});
  model.Begin(0, {.most = 16});
  int planned = 0;
  for (int round = 0; round < 1000; ++round) {
    const Offer offer{.most = 16, .made = made};
    const bool awake = model.Most(0, 1) > 0;
    planned += awake;
    Plan plan{.offers = {&offer, awake ? 1u : 0u}};
    model.Choose({&plan, 1});
    model.Observe(0, {.drafted = plan.k, .us = 300 + 200.0 * plan.k});
  }
  return planned;
}

TEST(CostModel, PlansSeldomWhereOnlyAModelDraftsAndItsDraftsFail) {
  const int lookup = RoundsWithAPlan(true), head = RoundsWithAPlan(false);
  EXPECT_GT(lookup, 300) << "a lookup may find something in any round";
  EXPECT_LT(head, 150);
}

// Plays 2,000 rounds of passes so short that planning alone is rested from. In every fifth round, by chance, a
// lookup offers a draft with much evidence, which is right; the others are wrong. Returns the share of the
// good drafts that was sent.
double GoodDraftsSentBetweenBadOnes() {
  RoundCosts costs(17, 1);
  const std::vector<PassCost> passes = {
      {1, 0, {70, 0, 0}}, {2, 0, {78, 0, 0}}, {17, 0, {300, 0, 0}}};
  costs.Start(passes);
  CostModel model({.name = "cost-model", .costs = &costs});
  model.Begin(0, {.most = 16});
  std::mt19937 random(1);
  int sent = 0, all = 0;
  for (int round = 0; round < 2000; ++round) {
    const bool good = random() % 5 == 0;
    const Offer offer{.most = 4, .made = true, .evidence = good ? 3 : 0};
    Plan plan{.offers = {&offer, model.Most(0, 1) > 0 ? 1u : 0u}};
    model.Choose({&plan, 1});
    all += good, sent += good && plan.k > 0;
    model.Observe(0, {.evidence = offer.evidence,
                      .drafted = plan.k,
                      .accepted = good ? plan.k : 0,
                      .us = 70 + 8.0 * plan.k});
  }
  return static_cast<double>(sent) / all;
}

TEST(CostModel, DoesNotSleepThroughTextOfWhichSomeCanBeGuessed) {
  EXPECT_GT(GoodDraftsSentBetweenBadOnes(), 0.6) << "of all";
}

}  // namespace
}  // namespace foretoken::draft_length
