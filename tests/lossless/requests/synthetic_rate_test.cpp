// SPDX-License-Identifier: Apache-2.0
// synthetic_acceptance_rate is the mean of accepted / drafted under every controller.
#include <gtest/gtest.h>

#include <cmath>

#include "fixtures/engines_testing.h"
#include "lossless/bundled_testing.h"

namespace foretoken {
namespace {

SpeculationStats GeneratedAtRate(const char* controller, double rate) {
  EngineOptions options;
  options.model = Bundled("9m-q8_0");
  options.draft_model = Bundled("1m-draft-q8_0");
  options.speculative.controller = controller;
  options.speculative.synthetic_acceptance_rate = rate;
  options.max_sequences = 4;
  options.context_size = 512;
  options.threads = 1;
  std::vector<Request> requests(4);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = "Once upon a time";
    requests[i].max_new_tokens = 480;
    requests[i].ignore_eos = true;
    requests[i].seed = 40 + i;
  }
  SpeculationStats all;
  for (const Completion& c : GeneratedTogether(*OpenEngine(options), requests))
    all.Add(c.speculation);
  return all;
}

// The probability b of each draft of a round of m drafts to be accepted where the ones before it
// were, so that b + b^2 + ... + b^m = m * rate.
double BaseOf(double rate, std::size_t m) {
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    const double base = (low + high) / 2;
    double sum = 0;
    for (std::size_t j = 1; j <= m; ++j) sum += std::pow(base, static_cast<double>(j));
    (sum < static_cast<double>(m) * rate ? low : high) = base;
  }
  return low;
}

// The distance of accepted / drafted from `rate`, in standard errors. A round of length m accepts m
// * rate drafts on average, so the differences are a martingale whose variance is that of the
// rounds by their lengths.
double Off(const SpeculationStats& stats, double rate) {
  double variance = 0;
  for (std::size_t m = 1; m < stats.k_histogram.size(); ++m) {
    const double base = BaseOf(rate, m);
    double mean = 0, square = 0, reached = 1;  // of A: sum P(A >= i), sum (2i - 1) P(A >= i)
    for (std::size_t i = 1; i <= m; ++i) {
      reached *= base;
      mean += reached;
      square += (2 * static_cast<double>(i) - 1) * reached;
    }
    variance += static_cast<double>(stats.k_histogram[m]) * (square - mean * mean);
  }
  return std::abs(static_cast<double>(stats.accepted) - rate * static_cast<double>(stats.drafted)) /
         std::sqrt(variance);
}

class SyntheticRate : public WithBundledModels<testing::TestWithParam<const char*>> {};

TEST_P(SyntheticRate, IsTheMeanOfAcceptedOverDrafted) {
  for (const double rate : {.3, .6, .9}) {
    const SpeculationStats stats = GeneratedAtRate(GetParam(), rate);
    // What the cost model drafts depends on the machine, and may be nothing. by-text is the cost
    // model with costs that follow from the sizes of the files.
    const bool measures = GetParam() == std::string("cost-model");
    if (measures && stats.drafted == 0) continue;
    if (!measures) ASSERT_GE(stats.drafted, 100) << rate;
    EXPECT_LT(Off(stats, rate), 4.5)
        << rate << ": " << stats.accepted << " of " << stats.drafted << " drafts";
    // The negative control: the bound detects other rates.
    if (stats.drafted > 500) EXPECT_GT(Off(stats, rate - .2), 4.5) << rate;
  }
}

INSTANTIATE_TEST_SUITE_P(Controllers, SyntheticRate,
                         testing::Values("cost-model", "by-text", "ewma", "heuristic", "fixed"),
                         [](const auto& of) { return Underscored(of.param); });

}  // namespace
}  // namespace foretoken
