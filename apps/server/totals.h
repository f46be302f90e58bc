// SPDX-License-Identifier: Apache-2.0
// server/totals.h: what all requests since the start did together, and how fast the last minute
// was.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

#include "foretoken/event_stream.h"
#include "foretoken/stats.h"

namespace foretoken::server {

// Any thread may use it.
class Totals {
 public:
  struct Sum {
    std::int64_t requests = 0;  // choices that ended
    SpeculationStats speculation;
    DrafterCounts drafters;
  };

  void Add(const ChoiceEnd& end) {
    const std::lock_guard lock(mutex_);
    ++sum_.requests;
    sum_.speculation.Add(end.completion.speculation);
    for (const auto& [name, count] : end.drafters) sum_.drafters[name] += count;
  }
  Sum sum() const {
    const std::lock_guard lock(mutex_);
    return sum_;
  }

  // Decoding time of a step, summed over its requests, and what it would have been without drafts.
  void AddTime(double actual_ms, double plain_ms) {
    const std::lock_guard lock(mutex_);
    Second& second = Now();
    second.actual_ms += actual_ms;
    second.plain_ms += plain_ms;
  }
  // The speed-up over the last 60 seconds; absent if nothing was decoded.
  std::optional<double> RecentSpeedup() const {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = SecondNow();
    double actual = 0, plain = 0;
    for (const Second& second : seconds_)
      if (second.at > now - kSeconds) actual += second.actual_ms, plain += second.plain_ms;
    if (!(actual > 0)) return std::nullopt;
    return plain / actual;
  }

 private:
  static constexpr std::int64_t kSeconds = 60;
  struct Second {
    std::int64_t at = -kSeconds;
    double actual_ms = 0, plain_ms = 0;
  };
  static std::int64_t SecondNow() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(now).count();
  }
  Second& Now() {
    const std::int64_t now = SecondNow();
    Second& second = seconds_[static_cast<std::size_t>(now % kSeconds)];
    if (second.at != now) second = {.at = now};
    return second;
  }

  mutable std::mutex mutex_;
  Sum sum_;
  std::array<Second, kSeconds> seconds_;
};

}  // namespace foretoken::server
