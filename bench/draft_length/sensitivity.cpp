// SPDX-License-Identifier: Apache-2.0
// bench/draft_length/sensitivity: what each tuning constant of the estimators is worth.
//
// usage: sensitivity [ROUNDS [fixed | WORD]]
//
// First each scenario of world.h is played with the cost model and with every fixed length; with
// `fixed` that is all. Then every scenario is played with each constant halved and doubled (of a
// fading, its distance from 1), or with those whose names contain WORD. Prints the change of the speed in percent: the mean of all
// scenarios, the worst and the best. The room is compiled into this program with constants that can
// be changed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "draft_length/tuning.h"
#include "draft_length/world.h"

namespace foretoken::bench {
namespace {

struct Fading {
  double* value;
};
struct Constant {
  std::string_view name;
  std::variant<int*, double*, Fading> value;
};

// Returns what stood there.
double Scale(const Constant& constant, double factor) {
  if (const auto* i = std::get_if<int*>(&constant.value)) {
    const int was = **i;
    **i = std::max(1, static_cast<int>(was * factor));
    return was;
  }
  if (const auto* d = std::get_if<double*>(&constant.value)) {
    const double was = **d;
    **d = was * factor;
    return was;
  }
  double& value = *std::get<Fading>(constant.value).value;
  const double was = value;
  value = std::max(0.0, 1 - (1 - was) * factor);
  return was;
}

void Restore(const Constant& constant, double was) {
  if (const auto* i = std::get_if<int*>(&constant.value)) **i = static_cast<int>(was);
  if (const auto* d = std::get_if<double*>(&constant.value)) **d = was;
  if (const auto* f = std::get_if<Fading>(&constant.value)) *f->value = was;
}

std::vector<Constant> Constants() {
  using namespace draft_length::tuning;
  return {{"kLongestWait", &kLongestWait},
          {"kFirstInterval", &kFirstInterval},
          {"kFirstLooks", &kFirstLooks},
          {"kHopedLooks", &kHopedLooks},
          {"kProbeShare", &kProbeShare},
          {"kOwnProbeShare", &kOwnProbeShare},
          {"kReviewShare", &kReviewShare},
          {"kNear", &kNear},
          {"kNearShare", &kNearShare},
          {"kFirstNear", &kFirstNear},
          {"kNearReads", &kNearReads},
          {"kNearLeast", &kNearLeast},
          {"kMostNear", &kMostNear},
          {"kHopeless", &kHopeless},
          {"kLooksFading", Fading{&kLooksFading}},
          {"kPseudoLooks", &kPseudoLooks},
          {"kTryShare", &kTryShare},
          {"kFirstTry", &kFirstTry},
          {"kFewReadings", &kFewReadings},
          {"kHopedDraft", &kHopedDraft},
          {"kTryEvery", &kTryEvery},
          {"kLately", &kLately},
          {"kFirstPatience", &kFirstPatience},
          {"kPlansInVain", &kPlansInVain},
          {"kLongestSleep", &kLongestSleep},
          {"kPlanningUs", &kPlanningUs},
          {"kNoNews", &kNoNews},
          {"kPlanningShare", &kPlanningShare},
          {"kMargin", &kMargin},
          {"kMarginPerJitter", &kMarginPerJitter},
          {"kCatchUpRounds", &kCatchUpRounds},
          {"kLookPasses", &kLookPasses},
          {"kFirstGuess", Fading{&kFirstGuess}},
          {"kOwnFading", Fading{&kOwnFading}},
          {"kSharedFading", Fading{&kSharedFading}},
          {"kIdleFading", Fading{&kIdleFading}},
          {"kPseudoOwn", &kPseudoOwn},
          {"kPseudoShared", &kPseudoShared},
          {"kKeptVerdicts", &kKeptVerdicts},
          {"kFirstReviewAlone", &kFirstReviewAlone},
          {"kFirstReviewTogether", &kFirstReviewTogether},
          {"kComparison", &kComparison},
          {"kTrial", &kTrial},
          {"kFirstSuspension", &kFirstSuspension},
          {"kLevelShare", &kLevelShare},
          {"kRowsShare", &kRowsShare},
          {"kStartCounts", &kStartCounts},
          {"kNeighbours", &kNeighbours},
          {"kLongRun", &kLongRun},
          {"kCalmJitter", &kCalmJitter},
          {"kFarOff", &kFarOff},
          {"kDraftShare", &kDraftShare},
          {"kTellsPauses", &kTellsPauses},
          {"kRowsPositions", &kRowsPositions},
          {"kPriceDrift", &kPriceDrift},
          {"kLeastNoise", &kLeastNoise},
          {"kDearerRows", &kDearerRows},
          {"kLeastRow", &kLeastRow},
          {"kUnknownRow", &kUnknownRow}};
}

std::vector<double> PlayAll(const std::vector<Scenario>& scenarios, int rounds) {
  std::vector<double> speeds;
  for (const Scenario& scenario : scenarios) {
    double log = 0;
    for (unsigned seed = 1; seed <= 4; ++seed)
      log += std::log(Play(scenario, rounds / scenario.sequences, seed));
    speeds.push_back(std::exp(log / 4));
  }
  return speeds;
}

struct Change {
  double mean = 0, worst = 0, best = 0;  // percent
  std::size_t where = 0;                 // of the worst
};

Change Compare(const std::vector<double>& speeds, const std::vector<double>& before) {
  Change change;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    const double percent = 100 * (speeds[i] / before[i] - 1);
    change.mean += percent / static_cast<double>(speeds.size());
    if (percent < change.worst) change.worst = percent, change.where = i;
    change.best = std::max(change.best, percent);
  }
  return change;
}

// The speed over that of the best fixed length, or of plain decoding where that is faster.
void PrintFixed(const std::vector<Scenario>& scenarios, const std::vector<double>& speeds,
                int rounds) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Scenario& scenario = scenarios[i];
    double best = 1;
    int best_k = 0;
    for (int k = 1; k <= kMostDrafts; ++k) {
      const double speed = PlayFixed(scenario, k, rounds / scenario.sequences, 1);
      if (speed > best) best = speed, best_k = k;
    }
    ratios.push_back(speeds[i] / best);
    fmt::print(
        "{:24} row {:4.2f} draft {:3.1f} accepted {:4.2f}: {:5.2f}, best fixed {:5.2f} (K {}), "
        "{:.3f}\n",
        scenario.name, scenario.row, scenario.draft, scenario.accepted, speeds[i], best, best_k,
        ratios.back());
  }
  std::sort(ratios.begin(), ratios.end());
  fmt::print("over the best fixed length: median {:.3f}, worst {:.3f}\n", ratios[ratios.size() / 2],
             ratios.front());
}

void Run(int rounds, std::string_view word) {
  const std::vector<Scenario> scenarios = Scenarios();
  const std::vector<double> before = PlayAll(scenarios, rounds);
  const auto least = std::min_element(before.begin(), before.end());
  fmt::print("{} scenarios, {} rounds; the slowest is {:.3f} of plain decoding ({})\n",
             scenarios.size(), rounds, *least,
             scenarios[static_cast<std::size_t>(least - before.begin())].name);
  PrintFixed(scenarios, before, rounds);
  if (word == "fixed") return;
  fmt::print("{:22} {:>6} {:>6} {:>6}   {:>6} {:>6} {:>6}  percent: mean, worst, best\n",
             "constant", "half", "", "", "double", "", "");
  for (const Constant& constant : Constants()) {
    if (constant.name.find(word) == std::string_view::npos) continue;
    Change changes[2];
    for (int i = 0; i < 2; ++i) {
      const double was = Scale(constant, i == 0 ? 0.5 : 2);
      changes[i] = Compare(PlayAll(scenarios, rounds), before);
      Restore(constant, was);
    }
    fmt::print("{:22} {:6.2f} {:6.1f} {:6.1f}   {:6.2f} {:6.1f} {:6.1f}   {} | {}\n", constant.name,
               changes[0].mean, changes[0].worst, changes[0].best, changes[1].mean,
               changes[1].worst, changes[1].best, scenarios[changes[0].where].name,
               scenarios[changes[1].where].name);
  }
}

}  // namespace
}  // namespace foretoken::bench

int main(int argc, char** argv) {
  foretoken::bench::Run(argc > 1 ? std::atoi(argv[1]) : 6000, argc > 2 ? argv[2] : "");
}
