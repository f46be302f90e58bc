// SPDX-License-Identifier: Apache-2.0
// lab/chi_square.h: tests whether two sets of counts may come from one distribution.
#pragma once

#include <cstdint>
#include <map>

namespace foretoken::lab {

// Probability that a chi-square variable of `degrees` degrees of freedom is at least x: the upper
// incomplete gamma function Q(degrees / 2, x / 2), to about 1e-12. REQUIRES: degrees >= 1.
double ChiSquareTail(double x, int degrees);

// Occurrences by outcome.
using Counts = std::map<std::int64_t, std::int64_t>;

struct Comparability {
  double statistic = 0;
  int degrees = 0;  // 0: one cell alone, so nothing was compared
  double p = 1;     // of such a difference, or a larger one, if the distribution is the same
};

// Pearson's test of homogeneity. Outcomes that both sets together have less than 10 times share one
// cell, so that each cell is expected to hold at least 5 for sets of equal size.
Comparability CompareDistributions(const Counts& a, const Counts& b);

}  // namespace foretoken::lab
