// SPDX-License-Identifier: Apache-2.0
#include "lab/chi_square.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace foretoken::lab {
namespace {

Counts Sample(const std::vector<double>& distribution, int n, unsigned seed) {
  std::mt19937 random(seed);
  std::discrete_distribution<int> draw(distribution.begin(), distribution.end());
  Counts counts;
  for (int i = 0; i < n; ++i) ++counts[draw(random)];
  return counts;
}

const std::vector<double> kDistribution = {0.4, 0.3, 0.2, 0.05, 0.04, 0.01};
const std::vector<double> kNear = {0.42, 0.28, 0.2, 0.05, 0.04, 0.01};  // two hundredths moved

TEST(ChiSquareTail, IsTheComplementaryErrorFunctionForOneDegree) {
  for (const double x : {1e-6, 0.1, 1.0, 2.9, 3.1, 3.841458820694124, 30.0, 200.0})
    EXPECT_NEAR(ChiSquareTail(x, 1) / std::erfc(std::sqrt(x / 2)), 1, 1e-11) << x;
  EXPECT_NEAR(ChiSquareTail(3.841458820694124, 1), 0.05, 1e-12);
}

TEST(ChiSquareTail, IsAFiniteSumForEvenDegrees) {
  for (const int degrees : {2, 4, 10, 60, 400})
    for (const double share : {0.2, 0.9, 1.0, 1.1, 2.0}) {
      const double half = share * degrees / 2;
      double term = std::exp(-half), sum = term;
      for (int k = 1; k < degrees / 2; ++k) sum += term *= half / k;
      EXPECT_NEAR(ChiSquareTail(2 * half, degrees) / sum, 1, 1e-10) << degrees << " " << share;
    }
}

TEST(ChiSquareTail, IsOneAtNothingAndFalls) {
  EXPECT_EQ(ChiSquareTail(0, 7), 1);
  double last = 1;
  for (double x = 0.5; x < 60; x += 0.5) {
    const double tail = ChiSquareTail(x, 7);
    EXPECT_LT(tail, last);
    EXPECT_GT(tail, 0);
    last = tail;
  }
}

TEST(CompareDistributions, IsPearsonsStatistic) {
  // Two cells, equal sizes: (60-40)^2/100 + (40-60)^2/100 = 8, one degree.
  const Comparability result = CompareDistributions({{1, 60}, {2, 40}}, {{1, 40}, {2, 60}});
  EXPECT_NEAR(result.statistic, 8, 1e-12);
  EXPECT_EQ(result.degrees, 1);
  EXPECT_NEAR(result.p, std::erfc(2), 1e-12);
  EXPECT_NEAR(CompareDistributions({{1, 30}, {2, 20}}, {{1, 300}, {2, 200}}).statistic, 0, 1e-12);
}

TEST(CompareDistributions, PutsRareOutcomesIntoOneCell) {
  Counts a{{0, 500}}, b{{0, 500}};
  for (int i = 1; i <= 40; ++i) (i % 2 ? a : b)[i] = 1;
  EXPECT_EQ(CompareDistributions(a, b).degrees, 1);
  EXPECT_EQ(CompareDistributions({{0, 500}, {1, 2}}, {{0, 500}}).degrees, 0);  // too few for a cell
  EXPECT_EQ(CompareDistributions({}, {}).degrees, 0);
}

TEST(CompareDistributions, PValuesOfOneDistributionAreEvenAndThoseOfTwoAreSmall) {
  int below = 0, control = 0;
  constexpr int kTrials = 400, kSamples = 4000;
  for (unsigned trial = 0; trial < kTrials; ++trial) {
    const Counts a = Sample(kDistribution, kSamples, 2 * trial);
    below += CompareDistributions(a, Sample(kDistribution, kSamples, 2 * trial + 1)).p < 0.1;
    control += CompareDistributions(a, Sample(kNear, kSamples, 2 * trial + 1)).p < 0.1;
  }
  EXPECT_NEAR(below, 0.1 * kTrials, 5 * std::sqrt(0.09 * kTrials));
  EXPECT_GT(control, kTrials / 4);  // would be a tenth
  EXPECT_LT(CompareDistributions(Sample(kDistribution, 40000, 1), Sample(kNear, 40000, 2)).p, 1e-4);
}

}  // namespace
}  // namespace foretoken::lab
