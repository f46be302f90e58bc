// SPDX-License-Identifier: Apache-2.0
// lossless/distribution_testing.h: tests whether two samples come from one distribution, of numbers and of
// texts.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "foretoken/engine.h"

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

// The tokens at places 1 to 4 of many texts, and the pairs of the places 1 and 2, 3 and 4; -1 behind the
// end of a text. The token at 0 is not drafted.
struct TextSample {
  double n = 0;
  std::vector<TokenHistogram> histograms = std::vector<TokenHistogram>(6);
  std::int64_t drafted = 0, accepted = 0;

  explicit TextSample(const std::vector<Completion>& texts) : n(static_cast<double>(texts.size())) {
    for (const Completion& c : texts) {
      const auto at = [&c](std::size_t i) { return i < c.token_ids.size() ? c.token_ids[i] : -1; };
      for (std::size_t i = 1; i < 5; ++i) ++histograms[i - 1][{at(i), 0}];
      ++histograms[4][{at(1), at(2)}];
      ++histograms[5][{at(3), at(4)}];
      drafted += c.speculation.drafted;
      accepted += c.speculation.accepted;
    }
  }
};

// The statistic that is nearest to its bound, or farthest beyond it.
struct Worst {
  double share = 0;  // of the bound
  TwoSamples comparison;
  int least_freedom = 1'000'000;  // of all of them
};
inline Worst CompareAll(const TextSample& a, const TextSample& b, double z) {
  Worst worst;
  for (std::size_t i = 0; i < a.histograms.size(); ++i) {
    const TwoSamples c = CompareSamples(a.histograms[i], a.n, b.histograms[i], b.n);
    worst.least_freedom = std::min(worst.least_freedom, c.freedom);
    if (c.freedom < 1) continue;
    const double share = c.chi_square / ChiSquareBound(c.freedom, z);
    if (share > worst.share) worst.share = share, worst.comparison = c;
  }
  return worst;
}

}  // namespace foretoken
