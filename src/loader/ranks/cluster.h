// SPDX-License-Identifier: Apache-2.0
// loader/ranks/cluster.h: what the ranks that compute one network together are, and what it costs
// them to exchange results. `foretoken cluster check` shows it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "foretoken/options.h"
#include "foretoken/result.h"
#include "foretoken/tools/measure.h"

namespace foretoken {

struct RankFacts {
  std::string host, cpu, isa;  // isa: of the kernels, "avx512"
  int threads = 1;
  std::int64_t memory_bytes = 0, available_bytes = 0;
  double memory_gb_per_s = 0;   // all threads read a buffer larger than the caches
  double weights_gb_per_s = 0;  // and multiply a matrix, while the other ranks do so too
  double share = 1;             // of each product that this rank computes
};

// A gather: each rank sends its part to all others.
struct GatherCost {
  std::int64_t bytes = 0;  // of all parts together
  Spread us;

  // Gbit/s that arrive at each of n ranks.
  double gbit_per_s(std::size_t n) const;
};

struct ClusterFacts {
  std::vector<RankFacts> ranks;
  std::vector<GatherCost> gathers;  // by size, ascending; empty where there is one rank

  // The time of a gather of this size: along straight lines between the measured sizes.
  double GatherUs(double bytes) const;
};

// What the ranks of options.ranks are. Takes about two seconds, and 256 MiB on each of them. Errors:
// kInvalidArgument (the options have no ranks), those of the threads that the options ask for, kRankLost.
[[nodiscard]] Result<ClusterFacts> MeasureCluster(EngineOptions options);

// What a pass exchanges.
struct PassTraffic {
  double gathers = 0, bytes = 0;  // bytes: of all parts of all gathers together
  double share = 1;  // of the pass, for which a rank waits in gathers, slower ranks included
};

// The time of a pass on n ranks that are like those of `facts`. It was measured on all of them:
// pass_us, with that traffic. What the gathers do not take is arithmetic, which n ranks divide:
// V / n + S. Gathers measured apart from passes may have been slower than those of a pass, which
// take at most traffic.share of it.
double PredictedPassUs(const ClusterFacts& facts, double pass_us, const PassTraffic& traffic,
                       int n);

}  // namespace foretoken
