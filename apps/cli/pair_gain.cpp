// SPDX-License-Identifier: Apache-2.0
#include "cli/pair_gain.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace foretoken::cli {

double RoundPrices::Pass(int rows) const {
  auto right = pass.lower_bound(rows);
  if (right != pass.end() && right->first == rows) return right->second;
  if (pass.size() == 1) return pass.begin()->second;
  if (right == pass.begin()) ++right;
  if (right == pass.end()) --right;
  const auto left = std::prev(right);
  const double slope = (right->second - left->second) / (right->first - left->first);
  const double us = left->second + slope * (rows - left->first);
  return rows > right->first ? std::max(us, right->second) : us;
}

RoundPrices PricesOf(const Measurements& measured, int context, double draft_us, double rest_us) {
  RoundPrices prices{.pass = {}, .draft = draft_us, .rest = rest_us};
  for (const PassCost& cost : measured.target)
    if (cost.context == context) prices.pass[cost.rows] = cost.us.median;
  double least = std::numeric_limits<double>::infinity();
  for (auto entry = prices.pass.rbegin(); entry != prices.pass.rend(); ++entry)
    least = entry->second = std::min(entry->second, least);
  return prices;
}

double Speedup(const RoundPrices& prices, std::span<const double> survival, int k) {
  double tokens = 1;
  for (int i = 0; i < k; ++i) tokens += survival[static_cast<std::size_t>(i)];
  return tokens * (prices.Pass(1) + prices.rest) /
         (k * prices.draft + prices.Pass(1 + k) + prices.rest);
}

BestLength BestLengthOf(const RoundPrices& prices, std::span<const double> survival) {
  BestLength best;
  for (int k = 1; k <= static_cast<int>(survival.size()); ++k)
    if (const double speedup = Speedup(prices, survival, k); speedup > best.speedup)
      best = {k, speedup};
  return best;
}

std::vector<double> SurvivalOf(const SpeculationStats& stats, int n) {
  std::vector<double> survival;
  double conditional = 0, product = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const bool judged = i < stats.judged_per_position.size() && stats.judged_per_position[i] > 0;
    if (!judged && i == 0) return {};
    if (judged)
      conditional = static_cast<double>(stats.accepted_per_position[i]) /
                    static_cast<double>(stats.judged_per_position[i]);
    survival.push_back(product *= conditional);
  }
  return survival;
}

std::optional<double> BreakEven(const RoundPrices& prices, int most) {
  const auto pays = [&](double accepted) {
    std::vector<double> survival;
    double product = 1;
    for (int i = 0; i < most; ++i) survival.push_back(product *= accepted);
    return BestLengthOf(prices, survival).k > 0;
  };
  if (!pays(1)) return std::nullopt;
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (pays(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace foretoken::cli
