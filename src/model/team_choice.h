// SPDX-License-Identifier: Apache-2.0
// model/team_choice.h: whether a pass runs on the whole team of threads or on the caller alone,
// decided by measurement.
//
// On an idle machine a team is faster even for small passes. On a busy machine a thread that lost
// its core makes the others wait for milliseconds at a barrier, far longer than a small pass takes.
// So both ways are measured and the faster one is used. The other is tried again so rarely that
// this costs a few percent at most. One slow pass of the team says little, because a thread that slept is
// late: the next pass is the team's, too. Where the team is slow for passes of one size and quick for those
// of others, the team is tried for that size again soon, and then after twice as many passes each time. A
// large pass on one thread costs much, so it is tried only where the team takes far longer than it did, or
// than small passes let expect. The choice never changes a result.
//
// Beside one busy program a team of two is quick in nineteen passes of twenty, and loses a core for
// milliseconds in the other, which is longer than the nineteen. So time that is lost in single long passes is
// summed for both ways, whatever the passes' size, and makes each of their passes dearer by its share.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace foretoken::model {

class TeamChoice {
 public:
  // Passes of more work are large: they take so long that waiting for a thread costs less than the
  // thread's help saves, unless it waits in each of them.
  static constexpr std::uint64_t kMostSmall = 16'000'000;

  // `work` is a number in proportion to what a pass computes (pass_work.h). Passes of one size class
  // are compared, by their time for each unit of work. now_us: of any steady clock.
  bool Alone(std::uint64_t work, double now_us) noexcept {
    Class& c = classes_[Index(work)];
    for (Losses& losses : losses_) losses.Fade(std::exp((now_us_ - now_us) / kForgottenUs));
    now_us_ = now_us;
    const bool large = work > kMostSmall;
    if (large && now_us - c.last_us > kForgottenUs) c.cost = {}, c.until_retry = 0, c.again = false;
    if (!large && c.last_us == 0) BeginAsNeighbour(c, Index(work));
    c.last_us = now_us;
    c.trying = Next(c, large);
    return c.trying == kAlone;
  }

  // Reports how long the pass took that the last Alone(work, ...) decided about.
  void Observe(std::uint64_t work, double us) noexcept {
    Class& c = classes_[Index(work)];
    const double units = static_cast<double>(std::max<std::uint64_t>(1, work)), cost = us / units;
    const int best = Best(c);
    if (best != c.last_best) c.last_best = best, c.n_best = 1;
    double& known = c.cost[static_cast<std::size_t>(c.trying)];
    const bool retry = known == 0 || c.trying != best;
    const bool follows = std::exchange(last_way_, c.trying) == c.trying;  // no thread has slept
    if (!retry) {
      if (follows)
        losses_[static_cast<std::size_t>(c.trying)].Add(
            us, std::max(0.0, us - kMostOfKnown * known * units));
      const double weight = std::max(kLeastWeight, 1.0 / ++c.n_best);
      const bool cold = c.n_best == 2 && cost < known;  // the first one met new memory
      known += (cold ? 1 : weight) * (std::min(cost, kMostOfKnown * known) - known);
      if (best == kTeam && c.n_best == kProven) c.soon = kSoon;
    } else {
      known = c.again ? std::min(known, cost) : cost;
    }
    if (c.trying == kTeam)
      NoteLeast(c.least_team, cost);
    else if (work <= kMostSmall)
      NoteLeast(least_alone_, cost);
    if (!retry) return;
    c.again = !c.again && c.trying == kTeam && Best(c) == kAlone;
    c.until_retry = c.again ? 1 : Wait(c);
  }

 private:
  static constexpr int kAlone = 0, kTeam = 1;
  // The team is disturbed where it takes so many times the least that it ever took. Passes that wait for
  // memory take as long for more rows, but those of a size class differ by less than this.
  static constexpr double kDisturbed = 1.5;
  static constexpr int kHurry = 4;  // small passes then try one thread so many times as often
  // After a pause the machine may be quiet again, and a long prompt may come.
  static constexpr double kForgottenUs = 1e6;
  // A loss is weighed as if passes of so much time had gone well before it.
  static constexpr double kUnknownUs = 20'000;
  // The share of a pass that moves the cost of the faster way, which begins with the mean of its passes; and
  // how many times the known cost a pass counts at most: two or three of those that lost a thread send the
  // next ones the other way. What is longer is a loss.
  static constexpr double kLeastWeight = 0.1, kMostOfKnown = 4;
  static constexpr int kSoon = 8, kProven = 16;  // passes
  static constexpr double kLeastWait = 12;       // passes between trials, however little they cost
  struct Class {
    std::array<double, 2> cost{};  // us for each unit of work; 0: not tried yet
    double least_team = 0;         // the least of the team
    double last_us = 0;
    int until_retry = 0, trying = kTeam;
    int last_best = kTeam, n_best = 1;  // the faster way, and its passes since it became that
    int soon = kSoon;    // passes until the team is tried that serves other sizes well
    bool again = false;  // the next pass repeats a trial of the team
  };

  // The passes of one way lately, and what single ones of them lost.
  struct Losses {
    double us = 0, lost_us = 0;
    void Add(double pass_us, double lost) noexcept { us += pass_us - lost, lost_us += lost; }
    void Fade(double share) noexcept { us *= share, lost_us *= share; }
    double Share() const noexcept { return lost_us / (us + kUnknownUs); }
  };

  // A new size class need not try both ways where one beside it has: texts grow from one to the next.
  void BeginAsNeighbour(Class& c, std::size_t index) noexcept {
    for (const std::size_t beside : {index - 1, index + 1}) {
      if (beside >= classes_.size()) continue;
      const Class& other = classes_[beside];
      if (other.cost[kAlone] == 0 || other.cost[kTeam] == 0) continue;
      c.cost = other.cost;
      c.until_retry = Wait(c);
      return;
    }
  }
  static void NoteLeast(double& least, double cost) noexcept {
    least = least == 0 ? cost : std::min(least, cost);
  }
  double Cost(const Class& c, int way) const noexcept {
    const auto i = static_cast<std::size_t>(way);
    return c.cost[i] * (1 + losses_[i].Share());
  }
  int Best(const Class& c) const noexcept {
    return c.cost[kAlone] != 0 && Cost(c, kAlone) <= Cost(c, kTeam) ? kAlone : kTeam;
  }
  // Passes before the slower way is tried again. One such pass costs (slower - faster) / faster passes. Two
  // of a team in 100 times as many add 2 %, one of one thread in 160 times as many 0.6 %, and 2.5 % where
  // small passes of the team are disturbed.
  int Wait(Class& c) noexcept {
    const int best = Best(c);
    const auto [better, worse] = std::minmax({Cost(c, kAlone), Cost(c, kTeam)});
    const double share = best == kAlone ? 100 : 160;
    const double passes =
        better > 0 ? std::clamp(share * (worse - better) / better, kLeastWait, 1e6) : 0;
    if (best == kTeam || !TeamServesOthers(c)) return static_cast<int>(passes);
    const int soon = c.soon;
    c.soon = std::min(1'000'000, 2 * c.soon);
    return std::min(soon, static_cast<int>(passes));
  }
  // Whether the team was the faster way for passes of another size lately.
  bool TeamServesOthers(const Class& c) const noexcept {
    return std::any_of(classes_.begin(), classes_.end(), [&](const Class& other) {
      return &other != &c && other.cost[kAlone] != 0 && other.cost[kTeam] != 0 &&
             Best(other) == kTeam && c.last_us - other.last_us < kForgottenUs;
    });
  }
  // The team takes far longer than it did, or longer than small passes let expect of one thread that has
  // not been tried.
  bool IsDisturbed(const Class& c) const noexcept {
    const double team = Cost(c, kTeam);
    return team > kDisturbed * c.least_team ||
           (c.cost[kAlone] == 0 && least_alone_ > 0 && team > least_alone_);
  }
  int Next(Class& c, bool large) const noexcept {
    if (!large && c.cost[kAlone] == 0) return kAlone;
    if (c.cost[kTeam] == 0) return kTeam;
    const int best = Best(c);
    const bool disturbed = best == kTeam && IsDisturbed(c);
    c.until_retry = std::max(0, c.until_retry - (disturbed && !large ? kHurry : 1));
    const bool calm = large && best == kTeam && !disturbed;
    return c.until_retry == 0 && !calm ? 1 - best : best;
  }
  // Half a power of two is a size class, so that the work of its passes differs by at most a half.
  static std::size_t Index(std::uint64_t work) noexcept {
    const auto width = static_cast<std::size_t>(std::bit_width(work));
    return 2 * width + (width < 2 ? 0 : work >> (width - 2) & 1);
  }

  std::array<Class, 130> classes_{};
  std::array<Losses, 2> losses_{};
  double now_us_ = 0;
  int last_way_ = kTeam;
  double least_alone_ = 0;  // of one thread, in any class of small passes
};

}  // namespace foretoken::model
