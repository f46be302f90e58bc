// SPDX-License-Identifier: Apache-2.0
// draft_length/tuning.h: the tuning constants of the estimators, and what each of them is worth.
//
// bench/draft_length/sensitivity plays the cost model on 282 simulated machines and texts, 8,000
// passes each, with every constant halved and doubled (of a fading, its distance from 1). Its
// figures stand behind each constant: the change of the speed in percent, in the mean of all
// scenarios and in the worst one. kNear, kNearReads, kNearLeast, kHopeless, kLooksFading, kPseudoLooks
// and kTellsPauses were played on all; those of planning (kPlansInVain to kPlanningShare) and kMostNear
// on 274, the others on the 170 to 250 that there were when they were taken.
#pragma once

// The benchmark compiles the room with `inline`, so that it can change the constants.
#ifndef FORETOKEN_TUNED
#define FORETOKEN_TUNED inline constexpr
#endif

namespace foretoken::draft_length::tuning {

// Every interval that doubles ends here (rounds or passes), so that a change is noticed at last.
FORETOKEN_TUNED int kLongestWait = 4096;  // 1/2: -0.01,  -0.3   x2:  0.00,   0.0

// Rounds before the first probe of a sequence that decodes plainly.
FORETOKEN_TUNED int kFirstInterval = 16;  // 1/2:  0.00,  -1.0   x2:  0.02,  -1.4
// The first rounds that a new drafter drafts, for each class of evidence, as long as drafts would pay
// if so many more were accepted.
FORETOKEN_TUNED int kFirstLooks = 8;     // 1/2:  0.01,  -0.5   x2: -0.03,  -6.2
FORETOKEN_TUNED double kHopedLooks = 7;  // 1/2:  0.01,  -0.3   x2: -0.02,  -1.0
// The share of all time that probes may take, of a request's own time, and of the time since a
// drafter was last timed.
FORETOKEN_TUNED double kProbeShare = 0.01;     // 1/2:  0.04,  -0.7   x2:  0.87,  -1.7
FORETOKEN_TUNED double kOwnProbeShare = 0.05;  // 1/2:  0.01,   0.0   x2: -0.06,  -0.9
FORETOKEN_TUNED double kReviewShare = 0.002;   // 1/2:  0.01,  -0.1   x2: -0.01,  -0.4
// Shortest drafts of a model that would lose at most this share of the speed, the share of all time
// that they may lose, and the plain passes before the first round whose share that is.
FORETOKEN_TUNED double kNear = 0.12;       // 1/2:  0.04,  -4.2   x2: -0.11,  -2.3
FORETOKEN_TUNED double kNearShare = 0.01;  // 1/2:  0.01,  -1.1   x2: -0.03,  -1.5
FORETOKEN_TUNED double kFirstNear = 200;   // 1/2:  0.01,  -1.0   x2:  0.00,  -0.5
// A drafter that rests must read later what it missed: where such a round loses more than so many times what
// reading a token costs, the share is as much smaller, down to a least part.
FORETOKEN_TUNED double kNearReads = 4;    // 1/2:  0.03,  -0.6   x2: -0.02,  -1.6
FORETOKEN_TUNED double kNearLeast = 0.3;  // 1/2:  0.00,   0.0   x2: -0.01,  -0.8
// Such a round counts at most this many times its expected time; what goes beyond is a pause.
FORETOKEN_TUNED double kMostNear = 1.5;  // 1/2:  0.34,  -3.2   x2:  0.00,  -0.2
// Drafts are hopeless if all first drafts together, old ones fading, brought less than this part of what such
// rounds need; before there were any, one of so many is thought to have been accepted.
FORETOKEN_TUNED double kHopeless = 0.7;      // 1/2: -0.03,  -0.8   x2:  0.00,  -0.9
FORETOKEN_TUNED double kLooksFading = 0.99;  // 1/2:  0.00,  -0.5   x2: -0.01,  -0.7
FORETOKEN_TUNED double kPseudoLooks = 4;     // 1/2: -0.01,  -0.4   x2: -0.01,  -2.3
// Longer drafts than planned, whose costs may have been read in a bad moment: the share of the time
// that they may waste, and the plain passes before the first round whose share that is; the rounds
// after which they are considered; the passes for which a reading counts as late; the readings until
// a draft's cost is known, and the share of what was measured at the start that it may be until then.
FORETOKEN_TUNED double kTryShare = 0.005;    // 1/2:  0.01,  -1.1   x2:  0.01,  -1.2
FORETOKEN_TUNED int kFirstTry = 200;         // 1/2:  0.01,  -0.4   x2: -0.01,  -1.3
FORETOKEN_TUNED int kTryEvery = 4;           // 1/2:  0.01,  -0.8   x2:  0.03,  -1.0
FORETOKEN_TUNED int kLately = 1024;          // 1/2: -0.01,  -5.2   x2: -0.01,  -3.1
FORETOKEN_TUNED int kFewReadings = 2;        // 1/2:  0.00,   0.0   x2:  0.00,  -0.1
FORETOKEN_TUNED double kHopedDraft = 0.125;  // 1/2:  0.00,   0.0   x2:  0.00,  -0.2
// Rounds with one drafter of a portfolio before another one gets a round.
FORETOKEN_TUNED int kFirstPatience = 24;  // 1/2:  0.00,   0.0   x2:  0.00,   0.0
// Plans without drafts, one after another, before a sequence rests from planning; the rounds without a
// plan, chosen so that plans take at most a share of the time.
FORETOKEN_TUNED int kPlansInVain = 8;           // 1/2:  0.01,  -0.2   x2:  0.00,  -0.2
FORETOKEN_TUNED int kLongestSleep = 16;         // 1/2:  0.00,  -0.8   x2:  0.00,  -0.3
FORETOKEN_TUNED double kPlanningUs = 0.8;       // 1/2:  0.00,  -0.7   x2:  0.00,  -3.2
FORETOKEN_TUNED double kPlanningShare = 0.002;  // 1/2:  0.00,  -3.2   x2:  0.00,  -0.7
// Plans for a sequence alone are so many times rarer where only models and heads draft.
FORETOKEN_TUNED double kNoNews = 8;  // 1/2:  0.00,  -0.6   x2:  0.00,  -0.4
// Drafts must promise a gain of this share, and more where readings scatter.
FORETOKEN_TUNED double kMargin = 0.01;            // 1/2: -0.01,  -2.2   x2:  0.02,  -1.7
FORETOKEN_TUNED double kMarginPerJitter = 0.125;  // 1/2: -0.01,  -0.7   x2:  0.00,  -0.8
// The most rounds over which the tokens that a drafter must read first are spread: half of them for a
// drafter whose first rounds are not over, and half of what is left of the text, if that is less.
FORETOKEN_TUNED int kCatchUpRounds = 64;  // 1/2: -0.01,  -1.1   x2: -0.03, -10.2
// The passes that a new drafter may read before its first rounds where kCatchUpRounds rounds are left; where
// fewer are, so much less, but one in any case.
FORETOKEN_TUNED double kLookPasses = 4;  // 1/2:  0.00,   0.0   x2:  0.00,   0.0

// How likely drafts are accepted: the first guess, the weight of a verdict when the next one comes,
// the weight of a request's own verdicts after a round without drafts, and pseudo-observations.
FORETOKEN_TUNED double kFirstGuess = 0.7;     // 1/2: -0.09, -11.1   x2: -0.20, -13.1
FORETOKEN_TUNED double kOwnFading = 0.93;     // 1/2: -0.06,  -2.6   x2:  0.07,  -0.8
FORETOKEN_TUNED double kSharedFading = 0.98;  // 1/2:  0.07,  -1.3   x2: -0.08,  -2.6
FORETOKEN_TUNED double kIdleFading = 0.985;   // 1/2:  0.00,  -0.6   x2:  0.03,  -0.4
FORETOKEN_TUNED double kPseudoOwn = 16;       // 1/2: -0.12,  -4.1   x2:  0.07,  -1.7
FORETOKEN_TUNED double kPseudoShared = 5;     // 1/2: -0.12,  -9.4   x2: -0.01,  -2.3
// The most verdicts that what an engine like this one has learned counts for.
FORETOKEN_TUNED double kKeptVerdicts = 8;  // 1/2: -0.02,  -1.5   x2:  0.00,  -1.2

// The referee, in passes: before a review, with one sequence and with several; plain passes of a
// review; passes with drafts after a suspension; plain passes of a suspension.
FORETOKEN_TUNED int kFirstReviewAlone = 256;    // 1/2: -0.01,  -2.1   x2:  0.00,  -1.7
FORETOKEN_TUNED int kFirstReviewTogether = 64;  // 1/2:  0.02,  -0.1   x2: -0.01,  -1.1
FORETOKEN_TUNED int kComparison = 8;            // 1/2:  0.05,  -1.3   x2: -0.07,  -1.3
FORETOKEN_TUNED int kTrial = 32;                // 1/2:  0.02,  -0.3   x2: -0.02,  -0.9
FORETOKEN_TUNED int kFirstSuspension = 256;     // 1/2: -0.01,  -1.0   x2:  0.02,  -0.8

// Readings of costs: the share of a reading that moves the machine's speed, and the least share
// that moves the cost of its own rows; the readings that a cost measured at the start counts for;
// the jitter at which a reading counts half; an error that is far off; the share of a reading that
// moves a draft's cost.
FORETOKEN_TUNED double kLevelShare = 0.15;  // 1/2:  0.02,  -0.8   x2: -0.01,  -1.3
FORETOKEN_TUNED double kRowsShare = 0.005;  // 1/2: -0.01,  -1.0   x2:  0.02,  -0.6
FORETOKEN_TUNED int kStartCounts = 8;       // 1/2:  0.06,  -0.6   x2: -0.01,  -2.1
// The most readings that neighbours count for beside a row's own; passes of equal rows in a row after
// which a reading moves their own cost half as much.
FORETOKEN_TUNED int kNeighbours = 16;      // 1/2:  0.01,  -0.2   x2:  0.00,  -0.3
FORETOKEN_TUNED double kLongRun = 8;       // 1/2:  0.02,  -0.6   x2:  0.01,  -0.8
FORETOKEN_TUNED double kCalmJitter = 0.1;  // 1/2: -0.03,  -2.0   x2:  0.02,  -0.4
FORETOKEN_TUNED double kFarOff = 0.25;     // 1/2:  0.07,  -1.3   x2: -0.31, -30.4
FORETOKEN_TUNED double kDraftShare = 0.1;  // 1/2: -0.01,  -0.4   x2:  0.00,  -0.4
// The readings of a row count from which on a far longer pass is a pause until another one follows.
FORETOKEN_TUNED int kTellsPauses = 4;  // 1/2:  0.00,  -0.2   x2:  0.00,  -0.2

// While nobody knows what a position costs: so many of them may cost a row as much as all weights do. The
// share of that doubt which comes back with each reading, and the least part of a pass that is chance.
FORETOKEN_TUNED double kRowsPositions = 16384;  // 1/2: -0.02,  -1.3   x2:  0.00,  -1.1
FORETOKEN_TUNED double kPriceDrift = 1e-5;      // 1/2:  0.00,  -1.1   x2:  0.01,  -1.0
FORETOKEN_TUNED double kLeastNoise = 0.03;      // 1/2: -0.01,  -1.2   x2:  0.00,  -1.0

// The cost of rows beyond the measured ones: a row costs this much more than the last ones did, and
// this share of a pass on top, which is the least that any row costs; where one point was measured,
// a row costs this share of a pass.
FORETOKEN_TUNED double kDearerRows = 1.2;   // 1/2:  0.00,   0.0   x2:  0.00,   0.0
FORETOKEN_TUNED double kLeastRow = 0.02;    // 1/2: -0.02,  -1.6   x2: -0.01,  -2.3
FORETOKEN_TUNED double kUnknownRow = 0.25;  // 1/2:  0.00,  -0.3   x2:  0.00,  -0.2

}  // namespace foretoken::draft_length::tuning
