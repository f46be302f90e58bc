// SPDX-License-Identifier: Apache-2.0
#include "engine/lookahead.h"

#include <gtest/gtest.h>

#include <random>

namespace foretoken::engine {
namespace {

const RoundCosts& NoCosts() {
  static const RoundCosts costs(64, 0.1);
  return costs;
}
std::unique_ptr<Lookahead> Make(std::string_view name, int ceiling) {
  static Survival shared;
  return MakeLookahead({name, ceiling, &NoCosts(), &shared});
}

TEST(Lookahead, NeverGoesBeyondItsCeilingOrBelowOne) {
  for (const std::string_view name : {"fixed", "ewma", "heuristic"})
    for (const int ceiling : {1, 2, 3, 8, 64}) {
      const auto l = Make(name, ceiling);
      for (int step = 0; step < 200; ++step) {
        ASSERT_GE(l->Next(0), 1) << name << " " << ceiling;
        ASSERT_LE(l->Next(0), ceiling) << name << " " << ceiling;
        l->Observe({.drafted = l->Next(0), .accepted = step % 80 < 40 ? l->Next(0) : 0});
      }
    }
}

TEST(Lookahead, IsNothingWhereNothingMayBeDrafted) {
  for (const std::string_view name : LookaheadNames()) EXPECT_EQ(Make(name, 0), nullptr) << name;
}

TEST(Lookahead, FixedStays) {
  const auto l = Make("fixed", 7);
  for (int step = 0; step < 20; ++step) {
    EXPECT_EQ(l->Next(0), 7);
    l->Observe({.drafted = 7, .accepted = step % 8});
  }
}

TEST(Lookahead, EwmaFollowsTheMean) {
  const auto l = Make("ewma", 12);
  EXPECT_EQ(l->Next(0), 5);
  for (int step = 0; step < 35; ++step) l->Observe({.drafted = l->Next(0), .accepted = l->Next(0)});
  EXPECT_EQ(l->Next(0), 12);
  for (int step = 0; step < 60; ++step) l->Observe({.drafted = l->Next(0), .accepted = 0});
  EXPECT_EQ(l->Next(0), 2);
}

TEST(Lookahead, HeuristicAddsTwoAndTakesOne) {
  const auto l = Make("heuristic", 8);
  EXPECT_EQ(l->Next(0), 4);
  l->Observe({.drafted = 4, .accepted = 4});
  EXPECT_EQ(l->Next(0), 6);
  l->Observe({.drafted = 6, .accepted = 5});
  EXPECT_EQ(l->Next(0), 5);
  // A draft that was cut short and accepted whole counts as whole.
  l->Observe({.drafted = 2, .accepted = 2});
  EXPECT_EQ(l->Next(0), 7);
  for (int step = 0; step < 20; ++step) l->Observe({.drafted = l->Next(0), .accepted = 0});
  EXPECT_EQ(l->Next(0), 1);
}

// A machine on which a pass of r rows takes 1000 + slope (r - 1) us and a draft draft_us, and a
// drafter whose drafts are accepted with probability `right` each.
struct World {
  double slope, draft_us, right;
  double PassUs(int rows) const { return 1000 + slope * (rows - 1); }
};

struct Result {
  double tokens_per_plain;  // tokens per second over plain decoding's
  double mean_k;            // of the last half
  int longest_plain_run = 0;
};

class CostModelIn {
 public:
  explicit CostModelIn(const World& world, int ceiling = 16)
      : costs_(65, 0.1), lookahead_(MakeLookahead({"cost-model", ceiling, &costs_, &shared_})) {
    world_ = world;
  }
  Result Play(int rounds, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> uniform(0, 1);
    double us = 0, tokens = 0, sum_k = 0;
    for (int round = 0; round < rounds; ++round) {
      const int k = lookahead_->Next(0);
      int accepted = 0;
      while (accepted < k && uniform(random) < world_.right) ++accepted;
      const double noise = 1 + 0.1 * uniform(random);
      const double pass = world_.PassUs(1 + k) * noise, draft = k * world_.draft_us;
      costs_.SeePass(1 + k, pass);
      if (k > 0) costs_.SeeDrafts(k, draft);
      costs_.SeeRest(5);
      lookahead_->Observe({.drafted = k, .accepted = accepted, .us = pass + draft + 5});
      us += pass + draft + 5;
      tokens += 1 + accepted;
      if (round >= rounds / 2) sum_k += k;
    }
    return {tokens / us * (1000 * 1.05 + 5), sum_k / (rounds - rounds / 2)};
  }
  World world_;

 private:
  RoundCosts costs_;
  Survival shared_;
  std::unique_ptr<Lookahead> lookahead_;
};

TEST(CostModel, IsNeverMuchSlowerThanPlainDecoding) {
  for (const double slope : {20.0, 150.0, 500.0, 1000.0})
    for (const double draft_us : {1.0, 100.0, 400.0, 1000.0})
      for (const double right : {0.0, 0.1, 0.3, 0.6}) {
        const World world{slope, draft_us, right};
        EXPECT_GT(CostModelIn(world).Play(600, 1).tokens_per_plain, 0.97)
            << "slope " << slope << ", draft " << draft_us << ", right " << right;
      }
}

TEST(CostModel, GainsWhereDraftsAreGoodAndPassesCheap) {
  const Result r = CostModelIn({.slope = 30, .draft_us = 50, .right = 0.9}).Play(400, 2);
  EXPECT_GT(r.tokens_per_plain, 3);
  EXPECT_GT(r.mean_k, 6);
  // The best fixed K of this world gives 4.2.
}

TEST(CostModel, DraftsLittleWhereLittleIsRight) {
  const Result r = CostModelIn({.slope = 100, .draft_us = 20, .right = 0.4}).Play(600, 3);
  EXPECT_GT(r.tokens_per_plain, 1.1);
  EXPECT_LT(r.mean_k, 3);
}

TEST(CostModel, NeverProbesWhereEvenPerfectDraftsWouldNotPay) {
  CostModelIn world({.slope = 900, .draft_us = 1000, .right = 0});
  EXPECT_LT(world.Play(50, 4).mean_k, 1);
  EXPECT_EQ(world.Play(500, 5).mean_k, 0);
}

TEST(CostModel, ComesBackWhenTheTextBecomesEasy) {
  CostModelIn world({.slope = 50, .draft_us = 30, .right = 0});
  EXPECT_LT(world.Play(300, 6).mean_k, 0.2);
  world.world_.right = 0.9;
  world.Play(400, 7);
  EXPECT_GT(world.Play(200, 8).tokens_per_plain, 2.5);
}

}  // namespace
}  // namespace foretoken::engine
