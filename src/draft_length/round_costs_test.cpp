// SPDX-License-Identifier: Apache-2.0
#include "draft_length/round_costs.h"

#include <gtest/gtest.h>

#include <random>

namespace foretoken::draft_length {
namespace {

PassCost Cost(int rows, int context, double us) {
  return {rows, context, {us, us, us}};
}

TEST(RoundCosts, KnowsNothingAtFirst) {
  const RoundCosts costs(16, 1);
  EXPECT_FALSE(costs.known());
  EXPECT_EQ(costs.PassUs(3, 0), 0);
  EXPECT_EQ(costs.TrustedRows(), 0);
}

TEST(RoundCosts, TakesTheFirstReadingWholeAndOthersInPart) {
  RoundCosts costs(16, 1);
  costs.RecordPass(1, 0, 100);
  EXPECT_DOUBLE_EQ(costs.PassUs(1, 0), 100);
  costs.RecordPass(1, 0, 110);
  EXPECT_GT(costs.PassUs(1, 0), 101);
  EXPECT_LT(costs.PassUs(1, 0), 110);
  for (int i = 0; i < 100; ++i) costs.RecordPass(1, 0, 110);
  EXPECT_NEAR(costs.PassUs(1, 0), 110, 0.1);
  costs.RecordPass(1, 0, 1e9);  // a pass that lost its core for a while says nothing,
  EXPECT_NEAR(costs.PassUs(1, 0), 110, 0.1);
  costs.RecordPass(1, 0, 1e9);  // and the next one counts as at most twice as slow
  EXPECT_GT(costs.PassUs(1, 0), 120);
  EXPECT_LT(costs.PassUs(1, 0), 150);
}

// If a pause moved the cost of its rows, passes of more rows would look cheap beside them.
TEST(RoundCosts, APauseDecidesNothing) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(2, 0, 110), Cost(5, 0, 150)});
  for (int pause = 0; pause < 4; ++pause) {
    for (int i = 0; i < 20; ++i) costs.RecordPass(2, 16000, 210), costs.RecordPass(1, 16000, 200);
    const double one = costs.PassUs(1, 16000), two = costs.PassUs(2, 16000);
    costs.RecordPass(1, 16000, 450);
    EXPECT_DOUBLE_EQ(costs.PassUs(1, 16000), one) << pause;
    EXPECT_DOUBLE_EQ(costs.PassUs(2, 16000), two) << pause;
  }
}

TEST(RoundCosts, RowsThatTakeLongEachTimeAreBelievedAmongOthers) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(2, 0, 110), Cost(5, 0, 120)});
  const auto play = [&costs](double five_us) {
    for (int i = 0; i < 500; ++i) {
      costs.RecordPass(1, 0, 100);
      costs.RecordPass(5, 0, five_us);
      costs.RecordPass(1, 0, 100);
    }
  };
  play(120);
  play(240);
  EXPECT_GT(costs.PassUs(5, 0) / costs.PassUs(1, 0), 1.4);
}

TEST(RoundCosts, KnowsTheRowsItWasToldOf) {
  RoundCosts costs(16, 1);
  EXPECT_TRUE(costs.KnownRows().empty());
  costs.Start(std::vector{Cost(9, 0, 180), Cost(1, 0, 100), Cost(9, 2048, 190)});
  EXPECT_EQ(costs.KnownRows(), (std::vector{1, 9}));
  costs.RecordPass(4, 0, 120);
  costs.RecordPass(4, 4000, 130);
  costs.RecordPass(2, 4000, 125);
  EXPECT_EQ(costs.KnownRows(), (std::vector{1, 2, 4, 9}));
}

TEST(RoundCosts, SlowMinutesDoNotMakeOldReadingsDear) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(3, 0, 120)});
  for (int i = 0; i < 100; ++i) costs.RecordPass(1, 0, 100), costs.RecordPass(3, 0, 120);
  for (int i = 0; i < 100; ++i) costs.RecordPass(3, 0, 240);  // slow, and only passes of three rows
  for (int i = 0; i < 100; ++i)
    costs.RecordPass(1, 0, 100);  // fast again, and only passes of one row
  EXPECT_NEAR(costs.PassUs(1, 0), 100, 2);
  EXPECT_LT(costs.PassUs(3, 0), 175);
}

// What an engine has learned behind contexts of 100 to 300 positions, where passes of rows take
// 70 + 8 (rows - 1) us and the context some more, up to a fifth longer by chance.
LearnedCosts LearnedBehindShortContexts(const LearnedCosts& kept, unsigned seed) {
  RoundCosts costs(17, 1);
  costs.StartWith(kept);
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> chance(0, 1);
  for (int pass = 0; pass < 400; ++pass) {
    const int rows = chance(random) < 0.6 ? 1 : 1 + static_cast<int>(chance(random) * 5),
              context = 100 + pass % 200;
    const double us = 70 + 8 * (rows - 1) + context * (0.06 + 0.01 * rows), late = chance(random);
    costs.RecordPass(rows, context, us * (1 + 0.2 * late * late * late));
  }
  return costs.Learned();
}

// Short contexts hardly tell how much of a pass is theirs.
TEST(RoundCosts, WhatAnotherLearnedOfAContextHardlyMovesBehindShortOnes) {
  LearnedCosts kept = {.position = {.bytes = 0.06, .arithmetic = 0.01}};
  for (const int rows : {1, 2, 3, 5, 9, 17}) kept.passes.push_back({rows, 70.0 + 8 * (rows - 1)});
  double one_us = 0, position_us = 0;
  for (unsigned engine = 0; engine < 50; ++engine) {
    const LearnedCosts learned = LearnedBehindShortContexts(kept, engine);
    EXPECT_TRUE(learned.of_another);
    one_us += learned.passes[0].us / 50;
    position_us += (learned.position.bytes + learned.position.arithmetic) / 50;
  }
  EXPECT_NEAR(one_us, 1.05 * 70, 0.04 * 70);  // passes are a twentieth longer in the mean
  EXPECT_NEAR(position_us, 1.05 * 0.07, 0.15 * 0.07);
}

TEST(RoundCosts, ReadsItsStartingCurve) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(9, 0, 180), Cost(1, 0, 100), Cost(5, 0, 140)});
  EXPECT_TRUE(costs.known());
  EXPECT_EQ(costs.TrustedRows(), 9);
  EXPECT_DOUBLE_EQ(costs.PassUs(1, 0), 100);
  EXPECT_DOUBLE_EQ(costs.PassUs(3, 0), 120);
  EXPECT_DOUBLE_EQ(costs.PassUs(9, 0), 180);
  EXPECT_GT(costs.PassUs(11, 0), 180 + 2 * 10);  // beyond: more expensive than the last rows
}

// A wider pass bounds the narrower ones; a lone row has kernels of its own.
// The machine is half as fast as when the costs were learned, and loses its core in the first pass.
TEST(RoundCosts, WhatIsOfAnotherMomentIsRightButForTheSpeed) {
  RoundCosts costs(16, 1);
  costs.StartWith({.passes = {{1, 100}, {5, 140}}, .drafts = {{.one_us = 30, .row_us = 2}}});
  EXPECT_DOUBLE_EQ(costs.PassUs(5, 0) / costs.PassUs(1, 0), 1.4);
  for (const double us : {900, 200, 210}) {
    costs.RecordDrafts(0, 2, 2, 500);
    costs.RecordCatchUp(0, 10, 500);
    costs.RecordPass(1, 0, us);
  }
  EXPECT_DOUBLE_EQ(costs.PassUs(1, 0), 200);
  EXPECT_DOUBLE_EQ(costs.PassUs(5, 0), 280);
  EXPECT_DOUBLE_EQ(costs.DraftsUs(0, 2, 2), 120);
  EXPECT_DOUBLE_EQ(costs.CatchUpUs(0, 10), 40);
  costs.RecordPass(1, 0, 240);  // from now on a pass is a reading
  EXPECT_GT(costs.PassUs(1, 0), 200);
  costs.RecordDrafts(0, 2, 2, 80);
  EXPECT_LT(costs.DraftsUs(0, 2, 2), 120);
}

TEST(RoundCosts, WhatWasLearnedStartsAnotherOneAlike) {
  RoundCosts costs(16, 1), other(16, 1);
  costs.Start(
      std::vector{Cost(1, 0, 100), Cost(5, 0, 140), Cost(1, 2000, 130), Cost(5, 2000, 230)});
  costs.StartDrafter(0, 30, 0, 2, 1.5);
  for (int i = 0; i < 40; ++i) costs.RecordPass(3, 0, 120);
  other.StartWith(costs.Learned());
  for (const int rows : {1, 3, 5})
    for (const int context : {0, 500, 4000})
      EXPECT_NEAR(other.PassUs(rows, context), costs.PassUs(rows, context), 1e-9)
          << rows << " rows behind " << context;
  EXPECT_DOUBLE_EQ(other.DraftsUs(0, 3, 3), costs.DraftsUs(0, 3, 3));
}

TEST(RoundCosts, AStartThatWasDisturbedIsNoBound) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 110), Cost(2, 0, 104), Cost(3, 0, 450), Cost(5, 0, 140)});
  EXPECT_DOUBLE_EQ(costs.PassUs(1, 0), 110);
  EXPECT_DOUBLE_EQ(costs.PassUs(2, 0), 104);
  EXPECT_DOUBLE_EQ(costs.PassUs(3, 0), 140);
  EXPECT_DOUBLE_EQ(costs.PassUs(5, 0), 140);
}

// Work may take longer than it must, but never less.
TEST(RoundCosts, AQuickReadingOfWhatWasOnlyMeasuredAtTheStartIsBelieved) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(3, 0, 250)});
  costs.RecordPass(3, 0, 130);
  costs.RecordPass(1, 0, 100);  // so the machine is as fast as it was
  EXPECT_NEAR(costs.PassUs(3, 0), 130, 1e-9);
  costs.RecordPass(3, 0, 400);
  EXPECT_LT(costs.PassUs(3, 0), 160);
}

// Two rows and four were read often, and their passes cost what the curve says. Three rows were read
// once, while the machine did something else.
TEST(RoundCosts, OneBadReadingSaysLittleBesideItsNeighbours) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(5, 0, 180)});
  for (int i = 0; i < 40; ++i) costs.RecordPass(2, 0, 120), costs.RecordPass(4, 0, 160);
  costs.RecordPass(3, 0, 280);
  EXPECT_LT(costs.PassUs(3, 0), 142);  // 157 without the neighbours
  for (int i = 0; i < 200; ++i) costs.RecordPass(3, 0, 156);
  EXPECT_NEAR(costs.PassUs(3, 0), 156, 3);  // what was read often counts
}

// Only passes of one row run for long, and one of twenty takes long. Nothing tells that one row has
// become cheaper beside two.
TEST(RoundCosts, LongRunsOfOneRowDoNotMakeItCheapBesideOthers) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(2, 0, 110), Cost(3, 0, 130)});
  for (int i = 0; i < 40; ++i) costs.RecordPass(1, 0, 100), costs.RecordPass(2, 0, 110);
  for (int i = 0; i < 8000; ++i) costs.RecordPass(1, 0, i % 20 == 0 ? 300 : 95);
  EXPECT_NEAR(costs.PassUs(2, 0) / costs.PassUs(1, 0), 1.1, 0.015);
}

// A core's clock may double within a text, in the first pass with drafts for example. Drafts are quicker
// then, too.
TEST(RoundCosts, AQuickReadingOnAMachineThatHasBecomeFasterIsNone) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(3, 0, 250), Cost(5, 0, 400)});
  costs.StartDrafter(0, 30, 0, 0);
  double pace = 1;
  const auto plain = [&] {
    for (int i = 0; i < 30; ++i) costs.RecordPass(1, 0, 100 * pace);
  };
  const auto ratio = [&costs](int rows) { return costs.PassUs(rows, 0) / costs.PassUs(1, 0); };
  for (const int rows : {3, 5}) {
    plain();
    pace *= 0.45;
    costs.RecordDrafts(0, 2, 2, 60 * pace);
    costs.RecordPass(rows, 0, (rows == 3 ? 250 : 400) * pace);
    plain();
    EXPECT_NEAR(ratio(3), 2.5, 0.2) << rows;
    EXPECT_NEAR(ratio(5), 4, 0.3) << rows;
    for (int i = 0; i < 20; ++i) costs.RecordDrafts(0, 2, 2, 60 * pace);
    EXPECT_NEAR(costs.DraftUs(0, 1) / costs.PassUs(1, 0), 0.3, 0.03) << rows;
  }
}

TEST(RoundCosts, DraftsThatAreReadWhileTimesScatterSayLittle) {
  const auto moved = [](double scatter) {
    RoundCosts costs(16, 1);
    costs.Start(std::vector{Cost(1, 0, 100), Cost(3, 0, 120)});
    costs.StartDrafter(0, 30, 0, 0);
    for (int i = 0; i < 100; ++i) costs.RecordPass(1, 0, i % 2 == 0 ? 100 : 100 * (1 + scatter));
    const double before = costs.DraftUs(0, 1);
    for (int i = 0; i < 3; ++i) costs.RecordDrafts(0, 1, 1, 2 * before);
    return costs.DraftUs(0, 1) / before;
  };
  EXPECT_GT(moved(0), 1.2);
  EXPECT_LT(moved(0.6), 1.12);
}

TEST(RoundCosts, PassesThatWereNotReadMayCostLittleMoreThanOnesThatWere) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(8, 0, 400)});
  EXPECT_EQ(costs.LeastPassUs(8, 0), costs.PassUs(8, 0));  // nothing was read
  for (int i = 0; i < 4; ++i) costs.RecordPass(1, 0, 100);
  EXPECT_LT(costs.LeastPassUs(8, 0), 120);
  EXPECT_GE(costs.LeastPassUs(8, 0), 100);
  for (int i = 0; i < 4; ++i) costs.RecordPass(8, 0, 400);
  EXPECT_DOUBLE_EQ(costs.LeastPassUs(8, 0), costs.PassUs(8, 0));
}

TEST(RoundCosts, FollowsReadingsAlongTheCurve) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(5, 0, 140)});
  for (int i = 0; i < 200; ++i) costs.RecordPass(1, 0, 200);  // the machine is half as fast now
  EXPECT_NEAR(costs.PassUs(1, 0), 200, 1);
  EXPECT_NEAR(costs.PassUs(5, 0), 280, 2);
  // Five rows cost more than the curve says.
  for (int i = 0; i < 400; ++i) costs.RecordPass(5, 0, 400), costs.RecordPass(1, 0, 200);
  EXPECT_NEAR(costs.PassUs(5, 0), 400, 8);
  EXPECT_NEAR(costs.PassUs(1, 0), 200, 4);
  EXPECT_NEAR(costs.PassUs(3, 0), 300, 12);
}

// The machine's speed changes while only one kind of pass is made. The estimates of the others
// follow.
TEST(RoundCosts, TakesAChangeOfPaceForOne) {
  RoundCosts costs(64, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(8, 0, 400), Cost(16, 0, 800)});
  for (int i = 0; i < 200; ++i) costs.RecordPass(8, 0, 400), costs.RecordPass(12, 0, 600);
  for (int minute = 0; minute < 6; ++minute) {
    for (int i = 0; i < 300; ++i) costs.RecordPass(8, 0, 720);
    EXPECT_NEAR(costs.PassUs(12, 0) / costs.PassUs(8, 0), 1.5, 0.06) << minute;
    for (int i = 0; i < 300; ++i) costs.RecordPass(8, 0, 400);
    EXPECT_NEAR(costs.PassUs(12, 0) / costs.PassUs(8, 0), 1.5, 0.06) << minute;
  }
}

TEST(RoundCosts, OneSlowPassOfRowsThatWereNeverReadChangesLittle) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(5, 0, 140)});
  costs.RecordPass(4, 0, 10'000);
  EXPECT_LT(costs.PassUs(4, 0), 250);
}

// A cache is read once for all rows of a sequence, and multiplied with each.
double Far(int rows, int context, int sequences = 1) {
  return 100 + 10 * (rows - 1) + context * (0.02 * sequences + 0.005 * rows);
}

TEST(RoundCosts, AddsWhatContextCosts) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(5, 0, 140), Cost(5, 1000, Far(5, 1000))});
  EXPECT_NEAR(costs.PassUs(5, 2000), Far(5, 2000), 5);
  EXPECT_GT(costs.PassUs(1, 2000), 105);  // which part is the rows' was not measured
  EXPECT_LT(costs.PassUs(1, 2000), 180);
  for (int i = 0; i < 100; ++i) costs.RecordPass(1, 5000, Far(1, 5000));
  EXPECT_NEAR(costs.PassUs(1, 5000), Far(1, 5000), 2);
  EXPECT_NEAR(costs.PassUs(5, 5000), Far(5, 5000), 10);
  EXPECT_NEAR(costs.PassUs(1, 0), 100, 5);
  EXPECT_NEAR(costs.PassUs(5, 0), 140, 7);
}

// No pass behind a context was measured. Readings of two lengths tell both of its prices, the machine is as
// fast as before, and other lengths and short texts follow.
TEST(RoundCosts, LearnsWhatContextCostsFromReadings) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(5, 0, 140)});
  for (int i = 0; i < 4; ++i) costs.RecordPass(3, 16'000, Far(3, 16'000));
  EXPECT_NEAR(costs.PassUs(3, 16'000), Far(3, 16'000), 10);
  EXPECT_NEAR(costs.PassUs(3, 8'000), Far(3, 8'000), 10);
  EXPECT_NEAR(costs.PassUs(3, 0), 120, 2);
  EXPECT_LT(costs.LeastPassUs(1, 16'000),
            Far(1, 16'000));  // one row may cost less than is expected
  for (int i = 0; i < 4; ++i) costs.RecordPass(1, 16'000, Far(1, 16'000));
  EXPECT_NEAR(costs.PassUs(1, 16'000), Far(1, 16'000), 10);
  EXPECT_NEAR(costs.PassUs(5, 16'000), Far(5, 16'000), 30);
  EXPECT_NEAR(costs.PassUs(5, 0), 140, 3);
  EXPECT_GT(costs.LeastPassUs(1, 16'000), Far(1, 16'000) - 25);  // and hardly any doubt is left
}

TEST(RoundCosts, SequencesReadOneContextEach) {
  RoundCosts costs(64, 1, 8);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(9, 0, 180)});
  for (int i = 0; i < 20; ++i) {
    costs.RecordPass({.rows = 8, .sequences = 8, .context = 4'000}, Far(8, 4'000, 8));
    costs.RecordPass({.rows = 8, .sequences = 1, .context = 4'000}, Far(8, 4'000, 1));
  }
  EXPECT_NEAR(costs.PassUs({8, 8, 4'000}), Far(8, 4'000, 8), 40);
  EXPECT_NEAR(costs.PassUs({8, 1, 4'000}), Far(8, 4'000, 1), 15);
}

// A pass behind a long context is slower for its context, and one behind a short context, whose price is
// known, because the machine has become slower.
TEST(RoundCosts, ASlowMinuteIsNoContext) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(5, 0, 140)});
  for (int i = 0; i < 50; ++i) costs.RecordPass(1, 16'000, Far(1, 16'000));
  for (int i = 0; i < 30; ++i) costs.RecordPass(1, 200, 2 * Far(1, 200));
  EXPECT_NEAR(costs.PassUs(1, 16'000), 2 * Far(1, 16'000), 60);
  EXPECT_NEAR(costs.PassUs(5, 200), 2 * Far(5, 200), 15);
}

// A copy of the target reads its cache.
TEST(RoundCosts, DraftsCostWhatTheirContextCosts) {
  RoundCosts costs(16, 1);
  costs.Start(std::vector{Cost(1, 0, 100), Cost(5, 0, 140)});
  costs.StartDrafter(0, 30, 0, 0);
  EXPECT_DOUBLE_EQ(costs.DraftsUs(0, 2, 2, 16'000), 60);
  EXPECT_LE(costs.LeastDraftsUs(0, 2, 2, 16'000), 30);
  for (int i = 0; i < 4; ++i) costs.RecordDrafts(0, 2, 2, 2 * (30 + 0.005 * 16'000), 16'000);
  EXPECT_NEAR(costs.DraftsUs(0, 1, 1, 16'000), 110, 8);
  EXPECT_NEAR(costs.DraftsUs(0, 1, 1, 8'000), 70, 8);
  EXPECT_NEAR(costs.DraftsUs(0, 1, 1), 30, 3);
}

TEST(RoundCosts, NeverFallsWithRows) {
  for (const bool start : {false, true}) {
    RoundCosts costs(16, 1);
    if (start) costs.Start(std::vector{Cost(1, 0, 90), Cost(2, 0, 70), Cost(8, 0, 100)});
    costs.RecordPass(1, 0, 100);
    costs.RecordPass(2, 0, 80);  // noise
    costs.RecordPass(6, 0, 90);
    for (int rows = 2; rows <= 20; ++rows)
      EXPECT_GE(costs.PassUs(rows, 0), costs.PassUs(rows - 1, 0)) << rows << start;
  }
}

// A few readings that were slow by chance must not make further rows look free.
TEST(RoundCosts, FewReadingsOfFewerRowsDoNotHideWhatMoreRowsCost) {
  RoundCosts costs(64, 1);
  for (int i = 0; i < 60; ++i) costs.RecordPass(8, 0, 400), costs.RecordPass(16, 0, 800);
  for (int i = 0; i < 2; ++i) costs.RecordPass(7, 0, 700);
  EXPECT_NEAR(costs.PassUs(16, 0) / costs.PassUs(8, 0), 2, 0.1);
  EXPECT_NEAR(costs.PassUs(12, 0) / costs.PassUs(8, 0), 1.5, 0.1);
  EXPECT_LE(costs.PassUs(7, 0), costs.PassUs(8, 0));
}

TEST(RoundCosts, TakesRowsItNeverSawForDearAndTrustsOnlyTwiceWhatItSaw) {
  RoundCosts costs(16, 1);
  costs.RecordPass(1, 0, 100);
  EXPECT_EQ(costs.TrustedRows(), 2);
  EXPECT_DOUBLE_EQ(costs.PassUs(2, 0), 125);
  costs.RecordPass(4, 0, 130);
  EXPECT_EQ(costs.TrustedRows(), 8);
  EXPECT_GT(costs.PassUs(6, 0), 150);
}

TEST(RoundCosts, KeepsDraftersApart) {
  RoundCosts costs(16, 2);
  costs.StartDrafter(0, 20, 0, 3);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 1), 20);
  EXPECT_DOUBLE_EQ(costs.CatchUpUs(0, 10), 30);
  EXPECT_DOUBLE_EQ(costs.DraftUs(1, 1), 0);
  costs.RecordDrafts(1, 4, 4, 60);
  costs.RecordCatchUp(1, 10, 50);
  EXPECT_DOUBLE_EQ(costs.DraftUs(1, 1), 15);
  EXPECT_DOUBLE_EQ(costs.CatchUpUs(1, 2), 10);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 1), 20);
}

TEST(RoundCosts, KnowsDraftsBySequences) {
  RoundCosts costs(64, 1, 8);
  costs.StartDrafter(0, 10, 45, 0);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 0), 0);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 1), 10);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 3), 20);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 8), 45);
  // Drafts of 4, 4 and 1 tokens take four steps, with two sequences on average.
  for (int i = 0; i < 200; ++i) costs.RecordDrafts(0, 9, 4, 4 * 14);
  EXPECT_NEAR(costs.DraftUs(0, 2), 14, 0.01);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 1), 10);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 8), 45);
  // With a single reading, each further sequence costs as much again.
  RoundCosts other(64, 1, 8);
  other.RecordDrafts(0, 4, 2, 40);
  EXPECT_DOUBLE_EQ(other.DraftUs(0, 2), 20);
  EXPECT_DOUBLE_EQ(other.DraftUs(0, 6), 60);
  EXPECT_DOUBLE_EQ(other.DraftUs(0, 1), 20);
}

TEST(RoundCosts, IgnoresWhatCannotBe) {
  RoundCosts costs(4, 1);
  costs.RecordPass(0, 0, 10);
  costs.RecordPass(5, 0, 10);
  costs.RecordPass(2, 0, -1);
  costs.RecordDrafts(0, 0, 0, 10);
  costs.RecordCatchUp(0, 0, 10);
  costs.Start({});
  EXPECT_FALSE(costs.known());
  EXPECT_EQ(costs.DraftUs(0, 1), 0);
}

// Its unit is a proposal, however long.
TEST(RoundCosts, ADrafterOfWholeProposalsCostsTheSameForEveryLength) {
  RoundCosts costs(16, 2, 8);
  costs.DraftsAtOnce(0);
  costs.StartDrafter(0, 100, 300, 0);
  costs.StartDrafter(1, 100, 300, 0);
  for (const int k : {1, 4, 8}) {
    EXPECT_DOUBLE_EQ(costs.DraftsUs(0, k, k), 100);
    EXPECT_DOUBLE_EQ(costs.DraftsUs(1, k, k), 100 * k);
    EXPECT_DOUBLE_EQ(costs.DraftsUs(0, 8 * k, k), 300);
  }
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 8), 300);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 8, 1), 0);
  EXPECT_DOUBLE_EQ(costs.DraftUs(1, 8, 1), 300);
  costs.RecordDrafts(0, 8, 8, 100);
  EXPECT_DOUBLE_EQ(costs.DraftsUs(0, 2, 2), 100);
}

// As much as two further ones and a half.
TEST(RoundCosts, TheFirstDraftOfAProposalMayCostMore) {
  RoundCosts costs(16, 1, 8);
  costs.StartDrafter(0, 40, 80, 0, 2.5);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 1), 100);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 1, 1), 40);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 8, 0), 200);
  EXPECT_DOUBLE_EQ(costs.DraftUs(0, 8, 3), 80);
  for (const int k : {1, 4}) EXPECT_DOUBLE_EQ(costs.DraftsUs(0, k, k), 100 + 40 * (k - 1));
  // Readings of any length teach the same: drafts take half as long now.
  for (int i = 0; i < 100; ++i) {
    const int k = 1 + i % 5;
    costs.RecordDrafts(0, k, k, (100 + 40 * (k - 1)) / 2);
  }
  EXPECT_NEAR(costs.DraftsUs(0, 1, 1), 50, 0.01);
  EXPECT_NEAR(costs.DraftsUs(0, 4, 4), 110, 0.01);
}

}  // namespace
}  // namespace foretoken::draft_length
