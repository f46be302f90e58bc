// SPDX-License-Identifier: Apache-2.0
// sampling/distribution_testing.h: distributions computed from the definition, in double and with full
// sorts, and chi-square. The tests of sampling and verify compare with these.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/normal_testing.h"
#include "foretoken/request.h"
#include "kernels/dispatch.h"

namespace foretoken::sampling {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

inline const kernels::Kernels& BestKernels() {
  static const kernels::Kernels& best = kernels::KernelsFor(kernels::AvailableIsas().back());
  return best;  // detecting the CPU takes longer than most tests of one row
}

inline std::vector<float> RandomLogits(int n, std::uint32_t seed, float deviation = 2.0f) {
  return Normal(n, seed, deviation);
}

inline std::vector<float> LogitsOf(const std::vector<double>& p) {
  std::vector<float> x;
  for (const double v : p) x.push_back(static_cast<float>(std::log(v)));
  return x;
}

// The longest repetition that t would extend, found by comparing the text before every earlier t
// with the end of the text.
inline int ReferenceRepetition(std::span<const Token> text, const DryPenalty& dry, Token t) {
  const auto breaks = [&](Token token) {
    return std::count(dry.breakers.begin(), dry.breakers.end(), token) > 0;
  };
  if (breaks(t)) return 0;
  if (dry.window >= 0)
    text = text.last(std::min(text.size(), static_cast<std::size_t>(dry.window)));
  std::size_t longest = 0;
  for (std::size_t at = 1; at < text.size(); ++at) {
    if (text[at] != t) continue;
    std::size_t length = 0;
    while (length < at && text[at - 1 - length] == text[text.size() - 1 - length] &&
           !breaks(text[at - 1 - length]))
      ++length;
    longest = std::max(longest, length);
  }
  return static_cast<int>(longest);
}

// Penalties, bias and masks, for every token of the vocabulary in turn.
inline std::vector<float> ReferenceEdits(std::vector<float> x, const SamplingParameters& s,
                                         std::span<const Token> text, int n_prompt,
                                         std::span<const Token> banned) {
  const auto size = static_cast<std::ptrdiff_t>(text.size());
  const auto window =
      s.repetition_window < 0 ? size : std::min<std::ptrdiff_t>(size, s.repetition_window);
  for (Token t = 0; t < static_cast<Token>(x.size()); ++t) {
    float& v = x[static_cast<std::size_t>(t)];
    if (std::count(text.end() - window, text.end(), t) > 0)
      v = v > 0 ? v / s.repetition_penalty : v * s.repetition_penalty;
    const auto count = std::count(text.begin() + n_prompt, text.end(), t);
    if (count > 0) v -= s.frequency_penalty * static_cast<float>(count) + s.presence_penalty;
    if (s.dry.multiplier > 0) {
      const int repeated = ReferenceRepetition(text, s.dry, t) - s.dry.allowed_length;
      if (repeated >= 0)
        v -= static_cast<float>(std::min(static_cast<double>(s.dry.multiplier) *
                                             std::pow(static_cast<double>(s.dry.base), repeated),
                                         static_cast<double>(std::numeric_limits<float>::max())));
    }
    if (const auto bias = s.logit_bias.find(t); bias != s.logit_bias.end()) v += bias->second;
    if (std::count(banned.begin(), banned.end(), t) > 0) v = -kInf;
  }
  return x;
}

inline std::vector<double> ReferenceDistribution(const std::vector<float>& x,
                                                 const SamplingParameters& s) {
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (x[i] > -kInf) kept.push_back(i);
  std::stable_sort(kept.begin(), kept.end(), [&](auto a, auto b) { return x[a] > x[b]; });
  const float best = x[kept.front()];
  if (s.greedy()) kept.resize(1);
  if (s.top_k > 0) kept.resize(std::min(kept.size(), static_cast<std::size_t>(s.top_k)));

  std::vector<double> p(x.size());
  const auto renormalise = [&] {
    double sum = 0;
    for (const auto i : kept) sum += p[i];
    std::vector<double> distribution(x.size());
    for (const auto i : kept) distribution[i] = p[i] / sum;
    p = distribution;
  };
  // Keeps the first entries of `kept` while `more(mass before)` is true, at least one.
  const auto cut = [&](auto more) {
    double mass = 0;
    std::size_t n = 0;
    while (n < kept.size() && (n == 0 || more(mass))) mass += p[kept[n++]];
    kept.resize(n);
    renormalise();
  };
  for (const auto i : kept)
    p[i] = s.greedy() ? 1.0
                      : std::exp((static_cast<double>(x[i]) - static_cast<double>(best)) /
                                 static_cast<double>(s.temperature));
  renormalise();
  if (s.top_p < 1) cut([&](double better) { return better <= static_cast<double>(s.top_p); });
  if (s.typical_p < 1) {
    double entropy = 0;
    for (const auto i : kept) entropy -= p[i] > 0 ? p[i] * std::log(p[i]) : 0.0;
    std::stable_sort(kept.begin(), kept.end(), [&](auto a, auto b) {
      return std::fabs(-std::log(p[a]) - entropy) < std::fabs(-std::log(p[b]) - entropy);
    });
    cut([&](double mass) { return mass < static_cast<double>(s.typical_p); });
  }
  double most = 0;
  for (const auto i : kept) most = std::max(most, p[i]);
  std::erase_if(kept, [&](auto i) { return p[i] < static_cast<double>(s.min_p) * most; });
  renormalise();
  if (s.eta > 0) {
    double entropy = 0;
    for (const auto i : kept) entropy -= p[i] > 0 ? p[i] * std::log(p[i]) : 0.0;
    const auto eta = static_cast<double>(s.eta);
    double least = std::min(eta, std::sqrt(eta) * std::exp(-entropy));
    for (const auto i : kept) most = std::max(most, p[i]);
    least = std::min(least, most);
    std::erase_if(kept, [&](auto i) { return p[i] < least; });
    renormalise();
  }
  return p;
}

// Sum over the buckets of (seen - expected)^2 / expected; infinite if an impossible bucket was hit.
inline double ChiSquare(const std::vector<std::int64_t>& seen, const std::vector<double>& p) {
  const double n = static_cast<double>(std::accumulate(seen.begin(), seen.end(), std::int64_t{0}));
  double chi = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const double expected = n * p[i], difference = static_cast<double>(seen[i]) - expected;
    if (expected > 0) chi += difference * difference / expected;
    if (expected <= 0 && seen[i] > 0) return std::numeric_limits<double>::infinity();
  }
  return chi;
}

}  // namespace foretoken::sampling
