// SPDX-License-Identifier: Apache-2.0
#include "model/team_choice.h"

#include <gtest/gtest.h>

namespace foretoken::model {
namespace {

struct Machine {
  double alone_us, team_us;
};

// The total time of n passes, and how many of them ran alone.
std::pair<double, int> PassesOn(TeamChoice& choice, Machine machine, int n,
                                std::uint64_t work = 1000) {
  double total = 0;
  int alone = 0;
  for (int i = 0; i < n; ++i) {
    const bool is_alone = choice.Alone(work);
    const double us = is_alone ? machine.alone_us : machine.team_us;
    choice.Observe(work, us);
    total += us;
    alone += is_alone;
  }
  return {total, alone};
}

TEST(TeamChoice, TakesTheFasterWayAndPaysLittleForTryingTheOther) {
  for (const Machine machine :
       {Machine{50, 40}, Machine{40, 50}, Machine{50, 12000}, Machine{4000, 2000}}) {
    TeamChoice choice;
    PassesOn(choice, machine, 2);  // the first measurement of both
    const double best = std::min(machine.alone_us, machine.team_us);
    EXPECT_LT(PassesOn(choice, machine, 20000).first, 1.04 * 20000 * best)
        << machine.alone_us << " " << machine.team_us;
  }
}

TEST(TeamChoice, FindsBackToTheTeamWhenTheMachineIsQuietAgain) {
  TeamChoice choice;
  PassesOn(choice, {100, 1000}, 100);
  PassesOn(choice, {100, 60}, 2000);
  EXPECT_LT(PassesOn(choice, {100, 60}, 100).second, 10);
}

TEST(TeamChoice, KeepsPassesOfOtherSizesApart) {
  TeamChoice choice;
  PassesOn(choice, {10, 100}, 100, 1000);
  EXPECT_LT(PassesOn(choice, {1000, 500}, 1000, 100000).second, 60);
  EXPECT_GT(PassesOn(choice, {10, 100}, 100, 1000).second, 90);
}

}  // namespace
}  // namespace foretoken::model
