// SPDX-License-Identifier: Apache-2.0
// model/team_choice.h: whether a small pass runs on the whole team of threads or on the caller
// alone, decided by measurement.
//
// On an idle machine a team is faster even for small passes. On a busy machine a thread that lost
// its core makes the others wait for milliseconds at a barrier, far longer than a small pass takes.
// So both ways are measured and the faster one is used. The other is tried again so rarely that
// this costs a few percent at most. The choice never changes a result.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace foretoken::model {

class TeamChoice {
 public:
  // `work` is any number that grows with the size of a pass. Passes of one size class (a power of
  // two) are compared.
  bool Alone(std::uint64_t work) noexcept {
    Class& c = classes_[Index(work)];
    if (c.us[kAlone] == 0) return c.trying = kAlone, true;
    if (c.us[kTeam] == 0) return c.trying = kTeam, false;
    const int best = c.us[kAlone] <= c.us[kTeam] ? kAlone : kTeam;
    c.trying = --c.until_retry <= 0 ? 1 - best : best;
    return c.trying == kAlone;
  }

  // Reports how long the pass took that the last Alone(work) decided about.
  void Observe(std::uint64_t work, double us) noexcept {
    Class& c = classes_[Index(work)];
    const int best = c.us[kAlone] <= c.us[kTeam] ? kAlone : kTeam;
    double& known = c.us[static_cast<std::size_t>(c.trying)];
    const bool retry = known == 0 || c.trying != best;
    known = retry ? us : 0.9 * known + 0.1 * us;
    if (!retry) return;
    // A pass the slower way costs (slower / faster) passes. One in 40 times as many passes adds 2.5
    // %.
    const double worse = c.us[kAlone] > c.us[kTeam] ? c.us[kAlone] : c.us[kTeam];
    const double better = c.us[kAlone] > c.us[kTeam] ? c.us[kTeam] : c.us[kAlone];
    const double passes = better > 0 ? 40 * worse / better : 0;
    c.until_retry = passes < 1e6 ? static_cast<int>(passes) : 1'000'000;
  }

 private:
  static constexpr int kAlone = 0, kTeam = 1;
  struct Class {
    std::array<double, 2> us{};  // 0: not tried yet
    int until_retry = 0, trying = kAlone;
  };
  static std::size_t Index(std::uint64_t work) noexcept {
    return static_cast<std::size_t>(std::bit_width(work));
  }

  std::array<Class, 65> classes_{};
};

}  // namespace foretoken::model
