// SPDX-License-Identifier: Apache-2.0
// loader/ranks/cluster_meter.h: measures the ranks and their gathers.
#pragma once

#include "base/machine/thread_pool.h"
#include "comm/ranks.h"
#include "foretoken/result.h"
#include "kernels/kernels.h"
#include "loader/ranks/cluster.h"

namespace foretoken::loader {

// All ranks call it together, and all get the same facts. Error: kRankLost.
[[nodiscard]] Result<ClusterFacts> MeasureCluster(comm::Ranks& ranks, ThreadPool& pool,
                                                  const kernels::Kernels& kernels);

}  // namespace foretoken::loader
