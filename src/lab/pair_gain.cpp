// SPDX-License-Identifier: Apache-2.0
#include "lab/pair_gain.h"

#include <algorithm>
#include <iterator>
#include <limits>

namespace foretoken::lab {

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

namespace {

double PerRound(double ms, const SpeculationStats& stats) {
  return stats.rounds > 0 ? 1000 * ms / static_cast<double>(stats.rounds) : 0;
}

// How much longer the rounds' passes took than measured passes with as many rows.
double Scale(const RoundPrices& measured, const SpeculationStats& stats) {
  double expected = 0;
  for (std::size_t m = 0; m < stats.k_histogram.size(); ++m)
    expected += static_cast<double>(stats.k_histogram[m]) * measured.Pass(1 + static_cast<int>(m));
  return expected > 0 && stats.verify_ms > 0 ? 1000 * stats.verify_ms / expected : 1;
}

double MeanRows(const SpeculationStats& stats) {
  return stats.draft_rounds > 0
             ? 1 + static_cast<double>(stats.drafted) / static_cast<double>(stats.draft_rounds)
             : 1;
}

// Averages over the rounds that drafted.
struct Drafting {
  explicit Drafting(const SpeculationStats& stats) {
    if (stats.draft_rounds == 0) return;
    const auto rounds = static_cast<double>(stats.draft_rounds);
    us = std::max(0.0, 1000 * (stats.draft_ms - stats.draft_prompt_ms)) / rounds;
    length = static_cast<double>(stats.drafted) / rounds;
  }
  double us = 0, length = 0;
};

void LevelOut(std::map<int, double>& passes) {
  double least = std::numeric_limits<double>::infinity();
  for (auto entry = passes.rbegin(); entry != passes.rend(); ++entry)
    least = entry->second = std::min(entry->second, least);
}

}  // namespace

std::map<int, double> PassesOf(const Measurements& measured, int context) {
  std::map<int, double> passes;
  for (const PassCost& cost : measured.target)
    if (cost.context == context) passes[cost.rows] = cost.us.median;
  LevelOut(passes);
  return passes;
}

RoundPrices PricesOf(const Measurements& measured, int context, const PairRounds& rounds) {
  const auto& [plain, shortest, longest] = rounds;
  RoundPrices prices;
  prices.pass = PassesOf(measured, context);
  const double alone = Scale(prices, plain), high = Scale(prices, longest),
               low = shortest.rounds > 0 ? Scale(prices, shortest) : high;
  // The factor for two rows as in rounds of one draft; from there in equal steps to the rows of the
  // longest.
  const double most = std::max(2.0, MeanRows(longest));
  for (auto& [rows, us] : prices.pass) {
    const double share = most > 2 ? std::clamp((rows - 2) / (most - 2), 0.0, 1.0) : 1;
    us *= rows == 1 ? alone : low + share * (high - low);
  }
  LevelOut(prices.pass);
  prices.plain = PerRound(plain.draft_ms + plain.verify_ms + plain.overhead_ms, plain);
  prices.rest = PerRound(longest.overhead_ms, longest);
  const Drafting one(shortest), many(longest);
  if (many.length > one.length && one.length > 0)
    prices.draft = std::max(0.0, (many.us - one.us) / (many.length - one.length));
  else if (many.length > 0)
    prices.draft = many.us / many.length;
  prices.begin = std::max(0.0, many.us - prices.draft * many.length);
  return prices;
}

double DraftPriceOf(const RoundPrices& prices, const SpeculationStats& drafting, bool at_once) {
  return at_once ? prices.begin + prices.draft * Drafting(drafting).length : prices.draft;
}

DraftShares SharesOf(const SpeculationStats& drafting, int n) {
  DraftShares shares;
  if (drafting.drafted == 0) return shares;
  const auto at = [&](const std::vector<std::int64_t>& counts, std::size_t i) {
    return i < counts.size() ? static_cast<double>(counts[i]) / static_cast<double>(drafting.rounds)
                             : 0;
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    shares.drafted.push_back(at(drafting.drafted_per_position, i));
    shares.gained.push_back(at(drafting.accepted_per_position, i));
  }
  return shares;
}

DraftShares SharesOf(double accepted, int n) {
  DraftShares shares;
  for (double product = accepted; shares.most() < n; product *= accepted) {
    shares.drafted.push_back(1);
    shares.gained.push_back(product);
  }
  return shares;
}

namespace {

constexpr double kMostScale = 4;  // and the least is one part of as many

// A mean round of at most k >= 1 drafts: its tokens, what it costs besides passes of several rows, and
// how often it has a pass of 2 to 1 + k rows.
struct Round {
  Round(const RoundPrices& prices, const DraftShares& shares, int k) : us(prices.rest) {
    double left = 1;  // the share of rounds with at least i drafts
    for (int i = 0; i < k; ++i) {
      const double drafted = shares.drafted[static_cast<std::size_t>(i)];
      tokens += shares.gained[static_cast<std::size_t>(i)];
      us += drafted * (prices.draft + (i == 0 ? prices.begin : 0));
      if (i == 0) us += (left - drafted) * prices.Pass(1);
      if (i > 0) passes.push_back(left - drafted);
      left = drafted;
    }
    passes.push_back(left);
  }
  double tokens = 1, us;
  std::vector<double> passes;
};

double Bounded(double scale) {
  return std::clamp(scale, 1 / kMostScale, kMostScale);
}

}  // namespace

double Speedup(const RoundPrices& prices, const DraftShares& shares, int k) {
  if (k == 0) return 1;
  const Round round(prices, shares, k);
  double us = round.us;
  for (int i = 1; i <= k; ++i)
    us += round.passes[static_cast<std::size_t>(i - 1)] * prices.Pass(1 + i);
  return round.tokens * prices.plain / us;
}

void Agree(const MeasuredSpeedups& measured, const DraftShares& shares, RoundPrices& prices) {
  const int most = shares.most();
  if (most == 0 || shares.drafted[0] <= 0) return;
  const auto of_passes = [&](const Round& round, double speedup) {
    return round.tokens * prices.plain / speedup - round.us;
  };
  const Round one(prices, shares, 1), many(prices, shares, most);
  const double low = Bounded(of_passes(one, most == 1 ? measured.longest : measured.shortest) /
                             (one.passes[0] * prices.Pass(2)));
  double at_low = 0, rising = 0;  // the time of all passes; of what rises with their rows
  for (int i = 1; i <= most; ++i) {
    const double us = many.passes[static_cast<std::size_t>(i - 1)] * prices.Pass(1 + i);
    at_low += us;
    if (most > 1) rising += us * (i - 1) / (most - 1);
  }
  const double high =
      rising > 0 ? Bounded(low + (of_passes(many, measured.longest) - low * at_low) / rising) : low;
  for (auto& [rows, us] : prices.pass) {
    const double share = most > 1 ? std::clamp((rows - 2.0) / (most - 1), 0.0, 1.0) : 0;
    if (rows > 1) us *= low + share * (high - low);
  }
  LevelOut(prices.pass);
}

BestLength BestLengthOf(const RoundPrices& prices, const DraftShares& shares) {
  BestLength best;
  for (int k = 1; k <= shares.most(); ++k)
    if (const double speedup = Speedup(prices, shares, k); speedup > best.speedup)
      best = {k, speedup};
  return best;
}

std::vector<double> SurvivalOf(const SpeculationStats& stats, int n) {
  std::vector<double> survival;
  double conditional = 0, product = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const bool known = i < stats.verified_per_position.size() && stats.verified_per_position[i] > 0;
    if (!known && i == 0) return {};
    if (known)
      conditional = static_cast<double>(stats.accepted_per_position[i]) /
                    static_cast<double>(stats.verified_per_position[i]);
    survival.push_back(product *= conditional);
  }
  return survival;
}

std::optional<double> BreakEven(const RoundPrices& prices, int most) {
  const auto pays = [&](double accepted) {
    return BestLengthOf(prices, SharesOf(accepted, most)).k > 0;
  };
  if (!pays(1)) return std::nullopt;
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (pays(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace foretoken::lab
