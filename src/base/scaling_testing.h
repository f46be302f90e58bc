// SPDX-License-Identifier: Apache-2.0
// base/scaling_testing.h: measures in tests how a cost grows with the size of its input.
//
//   EXPECT_LE(TimeExponent({4096, 16384, 65536}, [](std::size_t size) {
//               return [text = std::string(size, 'x')] { Parse(text); };
//             }),
//             kMostLinear);
//
// An exponent of 1 is linear, 2 is quadratic. It is the slope of the line that best fits log(cost)
// over log(size) (least squares).
#pragma once

#include <gtest/gtest.h>
#include <malloc.h>

#include <ctime>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// The most that a linear cost, or n log n, may measure. Sizes should differ by a factor of 16 or
// more.
constexpr double kMostLinear = 1.2;

// REQUIRES: as many costs as sizes, at least two different sizes, all of them more than 0.
inline double GrowthExponent(std::span<const std::size_t> sizes, std::span<const double> costs) {
  double mean_x = 0, mean_y = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    mean_x += std::log(static_cast<double>(sizes[i])) / static_cast<double>(sizes.size());
    mean_y += std::log(costs[i]) / static_cast<double>(sizes.size());
  }
  double covariance = 0, variance = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const double x = std::log(static_cast<double>(sizes[i])) - mean_x;
    covariance += x * (std::log(costs[i]) - mean_y);
    variance += x * x;
  }
  return covariance / variance;
}

// CPU time of the calling thread. The time of other processes does not count.
inline double ThreadCpuSeconds() {
  std::timespec now = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The exponent of this thread's CPU time. prepare(size) returns the function to measure, with its
// input inside; only that function is timed.
//
// A run that is too short for the clock is repeated. Each size is measured twice, in turn, and the
// least time counts, because other work on the machine only adds to it. If the result looks more
// than linear, it is measured again, up to 20 times in all, in case the machine was busy.
inline double TimeExponent(const std::vector<std::size_t>& sizes,
                           const std::function<std::function<void()>(std::size_t)>& prepare) {
  // Otherwise large blocks would be requested and returned in every run, and their pages made anew:
  // a step in the cost that no parser has caused.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  constexpr double kLeastSeconds = 2e-3;
  constexpr int kRepeats = 2, kMostRepeats = 20;
  std::vector<std::function<void()>> runs;
  for (const std::size_t size : sizes) runs.push_back(prepare(size));
  std::vector<double> least(sizes.size(), std::numeric_limits<double>::infinity());
  std::vector<int> n_runs(sizes.size(), 1);
  double exponent = 0;
  for (int repeat = 1; repeat <= kMostRepeats; ++repeat) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      double seconds = 0;
      for (;; n_runs[i] *= 2) {
        const double begin = ThreadCpuSeconds();
        for (int run = 0; run < n_runs[i]; ++run) runs[i]();
        seconds = ThreadCpuSeconds() - begin;
        if (seconds >= kLeastSeconds) break;
      }
      least[i] = std::min(least[i], seconds / n_runs[i]);
    }
    exponent = GrowthExponent(sizes, least);
    if (repeat >= kRepeats && exponent <= kMostLinear) break;
  }
  return exponent;
}

inline void ExpectLinear(const std::string& name, const std::vector<std::size_t>& sizes,
                         const std::function<std::function<void()>(std::size_t)>& prepare) {
  EXPECT_LE(TimeExponent(sizes, prepare), kMostLinear) << name;
}

// `part`, repeated as often as it fits into size bytes.
inline std::string Repeated(std::string_view part, std::size_t size) {
  std::string text;
  while (text.size() + part.size() <= size) text += part;
  return text;
}

}  // namespace foretoken
