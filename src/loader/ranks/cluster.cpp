// SPDX-License-Identifier: Apache-2.0
#include "loader/ranks/cluster.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "comm/agreement.h"
#include "kernels/dispatch.h"
#include "loader/ranks/cluster_meter.h"
#include "loader/ranks/rank_group.h"

namespace foretoken {

double GatherCost::gbit_per_s(std::size_t n) const {
  const auto ranks = static_cast<double>(n);
  return n < 2 || us.median <= 0
             ? 0
             : 8e-3 * static_cast<double>(bytes) * (ranks - 1) / ranks / us.median;
}

double ClusterFacts::GatherUs(double bytes) const {
  if (gathers.empty()) return 0;
  const auto size = [](const GatherCost& cost) { return static_cast<double>(cost.bytes); };
  auto right = std::find_if(gathers.begin(), gathers.end(),
                            [&](const GatherCost& cost) { return size(cost) >= bytes; });
  if (right == gathers.begin() || gathers.size() == 1) return gathers.front().us.median;
  if (right == gathers.end()) --right;
  const auto left = std::prev(right);
  const double share = (bytes - size(*left)) / (size(*right) - size(*left));
  return std::max(left->us.median, 0.0) + share * (right->us.median - left->us.median);
}

Result<ClusterFacts> MeasureCluster(EngineOptions options) {
  if (options.ranks == nullptr)
    return Fail(ErrorCode::kInvalidArgument,
                "ranks: this process is alone; start several with mpirun");
  RankGroup::Impl& group = options.ranks->impl();
  FORETOKEN_TRY(const kernels::Kernels* const kernels, kernels::KernelsByName(options.isa));
  FORETOKEN_TRY(const auto team, loader::MakeTeam(options, *kernels));
  model::Message message;
  message.Begin(model::Order::kMeasure, 0);
  if (!message.Send(group.ranks())) return comm::Lost(group.ranks());
  FORETOKEN_TRY(ClusterFacts facts, loader::MeasureCluster(group.ranks(), *team, *kernels));
  const int all = std::accumulate(group.shares().begin(), group.shares().end(), 0);
  for (std::size_t r = 0; r < facts.ranks.size() && r < group.shares().size(); ++r) {
    facts.ranks[r].weights_gb_per_s = group.speeds().bytes_per_second[r] / 1e9;
    facts.ranks[r].share = static_cast<double>(group.shares()[r]) / all;
  }
  return facts;
}

double PredictedPassUs(const ClusterFacts& facts, double pass_us, const PassTraffic& traffic,
                       int n) {
  const auto all = static_cast<double>(facts.ranks.size());
  if (n == static_cast<int>(facts.ranks.size())) return pass_us;
  const double apart =
      traffic.gathers > 0 ? traffic.gathers * facts.GatherUs(traffic.bytes / traffic.gathers) : 0;
  const double network = std::min(apart, traffic.share * pass_us);
  const double arithmetic = (pass_us - network) * all;
  return arithmetic / n + (n > 1 ? network : 0);
}

}  // namespace foretoken
