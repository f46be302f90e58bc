// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

namespace foretoken {

// Microseconds since a moment that is the same for the whole program. Tests have clocks of their
// own.
using MicrosecondClock = std::function<double()>;

inline double NowMicroseconds() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// How long work() takes.
template <typename F, typename Clock = double (*)()>
double Microseconds(F&& work, const Clock& now = NowMicroseconds) {
  const double begin = now();
  work();
  return now() - begin;
}

// Splits a stretch of time, which begins with this object, into parts.
class Laps {
 public:
  // The microseconds since the part before.
  double Next() noexcept {
    const auto now = Clock::now();
    const double us = std::chrono::duration<double, std::micro>(now - last_).count();
    last_ = now;
    return us;
  }
  void AddTo(double& us) noexcept { us += Next(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace foretoken
