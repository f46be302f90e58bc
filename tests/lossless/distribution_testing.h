// SPDX-License-Identifier: Apache-2.0
// lossless/distribution_testing.h: tests whether two samples come from one distribution.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace foretoken {

// The deviation that a normal variable exceeds with probability p.
inline double NormalQuantile(double p) {
  double low = 0, high = 40;
  while (high - low > 1e-9) {
    const double z = (low + high) / 2;
    (std::erfc(z / std::sqrt(2.0)) / 2 > p ? low : high) = z;
  }
  return low;
}

// The chi-square value that is exceeded with the probability of a normal variable beyond z (Wilson
// and Hilferty 1931).
inline double ChiSquareBound(int freedom, double z) {
  const double variance = 2.0 / (9 * freedom);
  return freedom * std::pow(1 - variance + z * std::sqrt(variance), 3);
}

// Counts of sequences of a few tokens.
using TokenKey = std::pair<int, int>;
using TokenHistogram = std::map<TokenKey, double>;

struct TwoSamples {
  double chi_square = 0;
  int freedom = 0;
};

// Compares two samples of unequal size; outcomes that are rare in the smaller one share one bin.
inline TwoSamples CompareSamples(const TokenHistogram& a, double n_a, const TokenHistogram& b,
                                 double n_b) {
  std::map<TokenKey, std::pair<double, double>> both;
  for (const auto& [key, n] : a) both[key].first = n;
  for (const auto& [key, n] : b) both[key].second = n;
  const double least = 10 * (n_a + n_b) / std::min(n_a, n_b);
  double rest_a = 0, rest_b = 0;
  TwoSamples result{0, -1};
  const auto add = [&](double x, double y) {
    const double difference = std::sqrt(n_b / n_a) * x - std::sqrt(n_a / n_b) * y;
    result.chi_square += difference * difference / (x + y);
    ++result.freedom;
  };
  for (const auto& [key, n] : both) {
    if (n.first + n.second >= least)
      add(n.first, n.second);
    else
      rest_a += n.first, rest_b += n.second;
  }
  if (rest_a + rest_b >= least) add(rest_a, rest_b);
  return result;
}

}  // namespace foretoken
