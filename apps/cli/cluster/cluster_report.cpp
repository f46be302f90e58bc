// SPDX-License-Identifier: Apache-2.0
#include "cli/cluster/cluster_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/figure.h"
#include "cli/input.h"
#include "cli/terminal.h"

namespace foretoken::cli {
namespace {

std::string Gibibytes(std::int64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string Bytes(std::int64_t bytes) {
  return bytes < 1024 ? fmt::format("{} B", bytes) : fmt::format("{} KiB", bytes / 1024);
}

std::string RankTable(const ClusterFacts& facts) {
  std::size_t host = 4, cpu = 9;
  for (const RankFacts& rank : facts.ranks) {
    host = std::max(host, rank.host.size());
    cpu = std::max(cpu, rank.cpu.size());
  }
  std::string out =
      fmt::format("{:>4}  {:<{}}  {:<{}}  {:<8} {:>7} {:>11} {:>11} {:>11} {:>11} {:>7}\n", "rank",
                  "host", host, "processor", cpu, "kernels", "threads", "memory", "available",
                  "reads", "multiplies", "share");
  for (std::size_t r = 0; r < facts.ranks.size(); ++r) {
    const RankFacts& rank = facts.ranks[r];
    out += fmt::format(
        "{:>4}  {:<{}}  {:<{}}  {:<8} {:>7} {:>11} {:>11} {:>6.1f} GB/s {:>6.1f} GB/s {:>5.1f} %\n",
        r, OnOneLine(rank.host), host, OnOneLine(rank.cpu), cpu, rank.isa, rank.threads,
        Gibibytes(rank.memory_bytes), Gibibytes(rank.available_bytes), rank.memory_gb_per_s,
        rank.weights_gb_per_s, 100 * rank.share);
  }
  return out;
}

std::string GatherTable(const ClusterFacts& facts) {
  std::string out = fmt::format("\ngathers among {} ranks\n  {:>8}  {:>26}  {:>8}\n",
                                facts.ranks.size(), "bytes", "us (least-most)", "Gbit/s");
  for (const GatherCost& cost : facts.gathers)
    out += fmt::format("  {:>8}  {:>26}  {:>8}\n", Bytes(cost.bytes),
                       fmt::format("{} ({}-{})", Figure(cost.us.median), Figure(cost.us.least),
                                   Figure(cost.us.most)),
                       Figure(cost.gbit_per_s(facts.ranks.size())));
  return out;
}

std::string ModelTable(const ClusterModel& model) {
  const lab::RoundPrices& prices = model.estimate.prices;
  std::string out = fmt::format(
      "\n{}\n  a pass of one row takes {} us, of which {} are {:.0f} gathers of {} KiB together\n",
      FileName(model.path), Figure(prices.Pass(1), 4), Figure(model.gather_us, 4),
      model.traffic.gathers, Figure(model.traffic.bytes / 1024));
  out += fmt::format("\ntokens/s of one request ({} {})\n  {:>5} {:>10} {:>12} {:>4} {:>8}\n",
                     model.estimate.shares.most() > 0 ? "drafts:" : "no drafts:", model.method,
                     "ranks", "plain", "with drafts", "K", "gain");
  for (const PredictedSpeed& speed : model.speeds)
    out += fmt::format("  {:>5} {:>10} {:>12} {:>4} {:>7.2f}x{}\n", speed.ranks,
                       Figure(speed.plain, 4), Figure(speed.drafting, 4), speed.k,
                       speed.drafting / speed.plain,
                       &speed == &model.speeds.back() ? "  measured" : "  computed");
  return out;
}

// The prices of a round where a pass on all ranks would run on n.
lab::RoundPrices PricesOn(const ClusterFacts& facts, const ClusterModel& model, int n) {
  lab::RoundPrices prices = model.estimate.prices;
  const double one = prices.Pass(1);
  for (auto& [rows, us] : prices.pass) {
    PassTraffic traffic = model.traffic;
    traffic.bytes *= rows;
    us = PredictedPassUs(facts, us, traffic, n);
  }
  prices.plain = std::max(prices.plain - one, 0.0) + prices.Pass(1);
  return prices;
}

}  // namespace

std::vector<PredictedSpeed> PredictSpeeds(const ClusterFacts& facts, const ClusterModel& model) {
  std::vector<PredictedSpeed> speeds;
  for (int n = 1; n <= static_cast<int>(facts.ranks.size()); ++n) {
    const lab::RoundPrices prices = PricesOn(facts, model, n);
    const lab::BestLength best = lab::BestLengthOf(prices, model.estimate.shares);
    const double plain = 1e6 / prices.plain;
    speeds.push_back({.ranks = n,
                      .plain = plain,
                      .drafting = plain * (best.k > 0 ? best.speedup : 1),
                      .k = best.k});
  }
  return speeds;
}

std::string ClusterTables(const ClusterCheck& check) {
  return RankTable(check.facts) + GatherTable(check.facts) +
         (check.model ? ModelTable(*check.model) : "");
}

}  // namespace foretoken::cli
