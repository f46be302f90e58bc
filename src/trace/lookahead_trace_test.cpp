// SPDX-License-Identifier: Apache-2.0
// Every controller on texts and machines that were made to mislead it. Prints the speed of each
// over plain decoding's and over the best fixed K's; cost-model is held to its promise.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/rng.h"
#include "draft_length/registry.h"
#include "draft_length/table_costs.h"

namespace foretoken::trace {
namespace {

constexpr int kCeiling = 8, kRounds = 3000;

struct Trap {
  std::string name;
  // Whether a draft at a position of the text is right. `round` counts from 0.
  std::function<bool(int round, int position)> right;
  std::function<double(int rows)> pass_us = [](int rows) { return 1000.0 + 60 * (rows - 1); };
  double draft_us = 80;
  // The factor by which the pass of this round takes longer than pass_us says.
  std::function<double(int round)> spike = [](int) { return 1.0; };
  // Passes that were measured before the start; empty: none.
  std::vector<int> measured_rows = {1, 2, 4, 8};
};

struct Run {
  double tokens = 0, us = 0;
  double rate() const { return tokens / us; }
};

Run Play(const Trap& trap, std::string_view name, int ceiling) {
  draft_length::RoundCosts costs(64, 1);
  std::vector<PassCost> measured;
  for (const int rows : trap.measured_rows)
    measured.push_back({.rows = rows, .context = 0, .us = {.median = trap.pass_us(rows)}});
  costs.Start(measured);
  costs.StartDrafter(0, trap.draft_us, 0, 0);
  draft_length::RoundCosts fixed_costs(64, 1);
  draft_length::StartWithTable(fixed_costs, 1, {});
  if (!measured.empty()) fixed_costs.Start(measured);
  fixed_costs.StartDrafter(0, trap.draft_us, 0, 0);
  const auto controller =
      draft_length::MakeController({.name = name, .costs = &costs, .fixed_costs = &fixed_costs});
  if (ceiling > 0) controller->Begin(0, {.most = ceiling});
  Run run;
  for (int round = 0, position = 0; round < kRounds; ++round) {
    const draft_length::Offer offer{.most = ceiling};
    draft_length::Plan plan{.context = position};
    if (ceiling > 0) plan.offers = {&offer, 1};
    if (ceiling > 0) controller->Choose({&plan, 1});
    const int k = plan.k;
    int accepted = 0;
    while (accepted < k && trap.right(round, position + accepted)) ++accepted;
    const double pass = trap.pass_us(1 + k) * trap.spike(round), draft = k * trap.draft_us;
    costs.RecordPass(1 + k, position, pass);
    if (k > 0) costs.RecordDrafts(0, k, k, draft);
    costs.RecordRest(4);
    const double us = pass + draft + 4;
    if (ceiling > 0)
      controller->Observe(
          0, {.drafted = k, .accepted = accepted, .n_decoding = 1, .context = position, .us = us});
    run.tokens += 1 + accepted;
    run.us += us;
    position += 1 + accepted;
  }
  return run;
}

double Uniform(int i) {
  return Noise(1, 0).Uniform(Stream::kSynthetic, i);
}

std::vector<Trap> Traps() {
  const auto always = [](int, int) { return true; };
  const auto never = [](int, int) { return false; };
  const auto often = [](int, int position) { return Uniform(position) < 0.7; };
  const auto seldom = [](int, int position) { return Uniform(position) < 0.15; };
  // A machine on which a fifth row, and a ninth, opens a new tile.
  const auto tiles = [](int rows) { return 1000.0 * (1 + (rows - 1) / 4); };
  std::vector<Trap> traps = {
      {.name = "always right", .right = always},
      {.name = "never right", .right = never},
      {.name = "every other token", .right = [](int, int position) { return position % 2 == 0; }},
      {.name = "stretches of 60", .right = [](int, int p) { return p / 60 % 2 == 0; }},
      {.name = "right for 100 rounds", .right = [](int round, int) { return round < 100; }},
      {.name = "wrong for 1000 rounds", .right = [](int round, int) { return round >= 1000; }},
      {.name = "cost spikes",
       .right = often,
       .spike = [](int round) { return round % 37 == 5 ? 20.0 : 1.0; }},
      {.name = "spikes at the start",
       .right = often,
       .spike = [](int round) { return round < 6 ? 10.0 : 1.0; }},
      {.name = "spikes, never right",
       .right = never,
       .spike = [](int round) { return round % 2 == 0 ? 3.0 : 1.0; }},
      {.name = "drafter dearer than target", .right = always, .draft_us = 1500},
      {.name = "dear and seldom right", .right = seldom, .draft_us = 700},
      {.name = "rows cost as passes do",
       .right = often,
       .pass_us = [](int rows) { return 1000.0 * rows; }},
      {.name = "tiles of four rows", .right = often, .pass_us = tiles},
      {.name = "holes in the table", .right = often, .pass_us = tiles, .measured_rows = {1, 8}},
      {.name = "one row measured", .right = seldom, .measured_rows = {1}},
      {.name = "nothing measured", .right = often, .measured_rows = {}},
      {.name = "nothing measured, never right",
       .right = never,
       .draft_us = 900,
       .measured_rows = {}},
  };
  return traps;
}

class Controllers : public testing::TestWithParam<int> {};

TEST_P(Controllers, AreNotMisled) {
  const Trap trap = Traps()[static_cast<std::size_t>(GetParam())];
  const double plain = Play(trap, "fixed", 0).rate();
  double best = plain;
  int best_k = 0;
  for (int k = 1; k <= kCeiling; ++k)
    if (const double rate = Play(trap, "fixed", k).rate(); rate > best) best = rate, best_k = k;
  fmt::print("{:<30} best K {} at {:.2f}x of plain;", trap.name, best_k, best / plain);
  for (const std::string_view name : NamesOf(AllControllers())) {
    if (name == "batch-size") continue;  // has no opinion of its own
    const double rate = Play(trap, name, kCeiling).rate();
    fmt::print(" {} {:.2f}x, {:.2f} of best;", name, rate / plain, rate / best);
    if (name == "cost-model") {
      EXPECT_GE(rate / plain, 0.97);
    }
  }
  fmt::print("\n");
}

INSTANTIATE_TEST_SUITE_P(Traps, Controllers, testing::Range(0, static_cast<int>(Traps().size())));

// Control: the traps are real. The rule that never learns falls into some of them.
TEST(ControllerTraps, FixedDoesNotKeepThePromise) {
  double worst = 1;
  for (const Trap& trap : Traps())
    worst = std::min(worst, Play(trap, "fixed", kCeiling).rate() / Play(trap, "fixed", 0).rate());
  EXPECT_LT(worst, 0.5);
}

TEST(ControllerTraps, CostModelGetsMostOfWhatThereIsToGain) {
  for (const Trap& trap : Traps()) {
    if (trap.name != "always right" && trap.name != "cost spikes" &&
        trap.name != "spikes at the start")
      continue;
    double best = 0;
    for (int k = 0; k <= kCeiling; ++k) best = std::max(best, Play(trap, "fixed", k).rate());
    EXPECT_GE(Play(trap, "cost-model", kCeiling).rate(), 0.9 * best) << trap.name;
  }
}

}  // namespace
}  // namespace foretoken::trace
