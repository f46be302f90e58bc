// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

namespace foretoken {

// How long work() takes.
template <typename F>
double Microseconds(F&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
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
