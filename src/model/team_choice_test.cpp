// SPDX-License-Identifier: Apache-2.0
#include "model/team_choice.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken::model {
namespace {

constexpr std::uint64_t kSmall = 1000, kLarge = 2 * TeamChoice::kMostSmall;

// What a pass of kSmall or kLarge takes.
struct Machine {
  double alone_us, team_us;
};

// Passes behind each other, on machines that the test gives.
class Passes {
 public:
  // The total time of n passes, and how many of them ran alone. A pass of other work takes longer
  // in proportion.
  std::pair<double, int> On(Machine machine, int n, std::uint64_t work = kSmall, double share = 1) {
    double total = 0;
    int alone = 0;
    for (int i = 0; i < n; ++i) {
      const bool is_alone = choice_.Alone(work, now_us_);
      const double us = share * (is_alone ? machine.alone_us : machine.team_us);
      choice_.Observe(work, us);
      now_us_ += us;
      total += us;
      alone += is_alone;
    }
    return {total, alone};
  }
  void Pause(double us) { now_us_ += us; }

 private:
  TeamChoice choice_;
  double now_us_ = 1e9;
};

TEST(TeamChoice, TakesTheFasterWayAndPaysLittleForTryingTheOther) {
  for (const std::uint64_t work : {kSmall, kLarge})
    for (const Machine machine :
         {Machine{50, 40}, Machine{40, 50}, Machine{50, 12000}, Machine{4000, 2000}}) {
      Passes passes;
      passes.On({machine.alone_us, machine.alone_us / 2}, 3, work);  // on a quiet machine
      passes.On(machine, 100, work);
      const double best = std::min(machine.alone_us, machine.team_us);
      EXPECT_LT(passes.On(machine, 20000, work).first, 1.04 * 20000 * best)
          << machine.alone_us << " " << machine.team_us << ", " << work;
    }
}

TEST(TeamChoice, FindsBackToTheTeamWhenTheMachineIsQuietAgain) {
  for (const std::uint64_t work : {kSmall, kLarge}) {
    Passes passes;
    passes.On({100, 60}, 10, work);
    EXPECT_GT(passes.On({100, 1000}, 200, work).second, 150);
    passes.On({100, 60}, 2000, work);
    EXPECT_LT(passes.On({100, 60}, 100, work).second, 10);
  }
}

TEST(TeamChoice, KeepsPassesOfOtherSizesApart) {
  Passes passes;
  passes.On({10, 100}, 100, 1000);
  EXPECT_LT(passes.On({1000, 500}, 1000, 100000).second, 60);
  EXPECT_GT(passes.On({10, 100}, 100, 1000).second, 90);
}

// A prompt on one thread would take twice as long.
TEST(TeamChoice, LargePassesDoNotTryOneThreadWhileTheTeamIsUndisturbed) {
  Passes passes;
  EXPECT_EQ(passes.On({4000, 2000}, 500, kLarge).second, 0);
  EXPECT_EQ(passes.On({4000, 2600}, 500, kLarge).second, 0);  // a clock that is somewhat slower
}

// The first large passes were disturbed already, so that nothing tells what they take on a quiet
// machine but the small ones.
TEST(TeamChoice, LargePassesThatWereAlwaysDisturbedAreTriedOnOneThread) {
  Passes passes;
  const double times = static_cast<double>(kLarge) / kSmall;
  passes.On({1, 9}, 100, kSmall);
  EXPECT_GT(passes.On({0.8 * times, 20 * times}, 200, kLarge).second, 180);
}

// A thread that tries alone what a calm team does faster costs less than a hundredth.
TEST(TeamChoice, SmallPassesOfACalmTeamTryOneThreadRarely) {
  for (const double alone_us : {131.0, 100.0, 400.0}) {
    Passes passes;
    passes.On({alone_us, 94}, 1000);
    EXPECT_LT(passes.On({alone_us, 94}, 20000).first, 1.008 * 20000 * 94) << alone_us;
  }
}

// What one thread takes was measured while it was disturbed, and now the team is.
TEST(TeamChoice, SmallPassesOfADisturbedTeamTryOneThreadSoon) {
  Passes passes;
  passes.On({400, 200}, 2);
  EXPECT_GT(passes.On({250, 350}, 1000).second, 880);
}

// Small passes of one row cost more for each unit of work than those of sixteen, in the team as well.
TEST(TeamChoice, AFewRowsAreNotDisturbedBecauseMoreAreCheaperForTheirWork) {
  Passes passes;
  double total = 0;
  for (int i = 0; i < 4000; ++i) {
    passes.On({400, 260}, 1, 16 * kSmall);
    const double us = passes.On({131, 94}, 1).first;
    if (i >= 1000) total += us;
  }
  EXPECT_LT(total, 1.008 * 3000 * 94);
}

// Passes that wait for memory take as long for seven rows as for four.
TEST(TeamChoice, RowsThatCostNothingDoNotLookLikeADisturbance) {
  for (const std::uint64_t row : {1u << 10, 1u << 24}) {
    Passes passes;
    double total = 0;
    for (int i = 0; i < 6000; ++i) {
      const unsigned n_rows = i / 50 % 2 == 0 ? 4 : 7;
      const double us = passes.On({400, 230}, 1, row * n_rows).first;
      if (i >= 2000) total += us;
    }
    EXPECT_LT(total, 1.008 * 4000 * 230) << row;
  }
}

// One thread was tried for passes of many rows, which are cheaper for their work.
TEST(TeamChoice, LargePassesOfFewRowsAreNotComparedWithOneThreadOfManyRows) {
  Passes passes;
  passes.On({6000, 4000}, 20, 16 * kLarge);
  EXPECT_GT(passes.On({6000, 30000}, 100, 16 * kLarge).second, 80);
  EXPECT_EQ(passes.On({4000, 2000}, 200, kLarge).second, 0);
}

// A text grows, and each of its passes is a little more work than the one before.
TEST(TeamChoice, PassesThatGrowDoNotTryOneThreadInEachSizeClass) {
  Passes passes;
  passes.On({131, 94}, 50, 1024);
  int alone = 0;
  for (std::uint64_t work = 1024; work < 64 * 1024; work += work / 32)
    alone += passes.On({131, 94}, 2, work, static_cast<double>(work) / 1024).second;
  EXPECT_LE(alone, 4);  // of twelve classes
}

// One class has passes of up to a half more work.
TEST(TeamChoice, ComparesPassesByTheirWork) {
  Passes passes;
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(passes.On({4000, 2000}, 1, kLarge).second, 0);
    EXPECT_EQ(passes.On({4000, 2000}, 1, kLarge * 11 / 8, 11.0 / 8).second, 0);
  }
}

// One pass whose thread lost its core for long must not send the next ones to one thread for long.
TEST(TeamChoice, OneSlowPassIsForgotten) {
  for (const std::uint64_t work : {kSmall, kLarge}) {
    Passes passes;
    passes.On({4000, 2000}, 100, work);
    passes.On({4000, 30000}, 1, work);
    passes.On({4000, 2000}, 100, work);
    EXPECT_LT(passes.On({4000, 2000}, 100, work).second, 4) << work;
  }
}

// The first pass of a size touches new memory, and takes twice as long as all that follow.
TEST(TeamChoice, AColdFirstPassSaysNothing) {
  for (const std::uint64_t work : {kSmall, kLarge}) {
    Passes passes;
    if (work == kSmall) passes.On({6000, 9000}, 1, work);  // one thread is tried first
    passes.On({6000, 9000}, 1, work);
    EXPECT_LT(passes.On({6000, 4000}, 200, work).second, 12) << work;
  }
}

// A close decision is looked at again soon, because another look costs little.
TEST(TeamChoice, ANarrowDefeatOfTheTeamIsTriedAgainSoon) {
  for (int n = 100; n < 300; n += 20) {
    Passes passes;
    passes.On({6000, 4000}, 20, kLarge);
    EXPECT_GT(passes.On({6000, 6500}, n, kLarge).second, n / 2);
    EXPECT_LT(passes.On({6000, 4000}, 200, kLarge).second, 25) << n;
  }
}

// A thread that slept while one thread worked alone is late in the next pass of the team, and only there.
TEST(TeamChoice, AThreadThatSleptDoesNotRuleTheTeamOut) {
  TeamChoice choice;
  double now_us = 1e9;
  int alone = 0;
  bool slept = true;
  for (int i = 0; i < 200; ++i) {
    const bool is_alone = choice.Alone(kSmall, now_us);
    const double us = is_alone ? 500 : slept ? 9000 : 250;
    choice.Observe(kSmall, us);
    now_us += us;
    slept = is_alone;
    alone += is_alone;
  }
  EXPECT_LT(alone, 8);
}

// The first passes of a size were disturbed, while the team serves passes of another size well.
TEST(TeamChoice, TheTeamThatServesOtherSizesIsTriedAgainSoon) {
  for (const std::uint64_t work : {4 * kSmall, kLarge}) {
    Passes passes;
    passes.On({500, 250}, 20, kSmall);
    passes.On({500, 9000}, work == kLarge ? 6 : 4, work);
    int alone = 0;
    for (int i = 0; i < 100; ++i) {
      passes.On({500, 250}, 5, kSmall);
      alone += passes.On({1000, 500}, 1, work).second;
    }
    EXPECT_LT(alone, 20) << work;
  }
}

// Beside one busy program the team is quick now and then, and slower than one thread in the mean.
TEST(TeamChoice, ATeamThatIsQuickNowAndThenIsNotChosenForLong) {
  for (const std::uint64_t work : {kSmall, kLarge}) {
    Passes passes;
    std::uint64_t random = 3;
    double total = 0;
    for (int i = 0; i < 5000; ++i) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      total += passes.On({500, random >> 62 == 0 ? 280.0 : 900.0}, 1, work).first;
      passes.On({500, 400}, i % 8 == 0 ? 1 : 0, 16 * kSmall);  // another size
    }
    EXPECT_LT(total, 1.08 * 5000 * 500) << work;
  }
}

// What 5,000 passes take in the mean, and the share of them that ran alone.
struct Disturbed {
  double us, alone;
};
// A pass takes 250 us in the team and 375 us alone; one in so many of each takes 9,000 us.
Disturbed With(int one_in_team, int one_in_alone) {
  TeamChoice choice;
  double now_us = 1e9, total = 0;
  std::uint64_t random = 3;
  int alone = 0;
  for (int i = 0; i < 6000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const bool is_alone = choice.Alone(kSmall, now_us);
    const auto one_in = static_cast<std::uint64_t>(is_alone ? one_in_alone : one_in_team);
    const double us = (random >> 33) % one_in == 0 ? 9000 : is_alone ? 375 : 250;
    choice.Observe(kSmall, us);
    now_us += us;
    if (i < 1000) continue;
    total += us;
    alone += is_alone;
  }
  return {total / 5000, alone / 5000.0};
}

// Beside one busy program the team loses a core in one pass of twenty, and takes 690 us in the mean.
TEST(TeamChoice, WhatATeamLosesInFewPassesCounts) {
  EXPECT_LT(With(20, 1 << 30).us, 1.15 * 375);
}

// Another machine took the processor.
TEST(TeamChoice, LossesOfBothWaysSayNothing) {
  EXPECT_LT(With(40, 40).alone, 0.15);
}

TEST(TeamChoice, OneLossInManyPassesSendsNoneAlone) {
  EXPECT_LT(With(1500, 1 << 30).alone, 0.08);  // 0.053 with no loss at all
}

// Where no size is served well, the machine is busy.
TEST(TeamChoice, ATeamThatServesNoSizeIsTriedRarely) {
  Passes passes;
  double total = 0, least = 0;
  for (int i = 0; i < 1000; ++i)
    for (const std::uint64_t work : {kSmall, 4 * kSmall, 16 * kSmall}) {
      total += passes.On({500, 8000}, 1, work).first;
      least += 500;
    }
  EXPECT_LT(total, 1.1 * least);
}

TEST(TeamChoice, AfterAPauseLargePassesBeginWithTheTeam) {
  Passes passes;
  passes.On({4000, 2000}, 10, kLarge);
  EXPECT_GT(passes.On({4000, 20000}, 100, kLarge).second, 80);
  passes.Pause(2e6);
  EXPECT_EQ(passes.On({4000, 2000}, 100, kLarge).second, 0);
}

}  // namespace
}  // namespace foretoken::model
