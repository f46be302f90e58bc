// SPDX-License-Identifier: Apache-2.0
// model/ranks/speeds.h: how fast ranks are, and what is decided from it before a network is loaded.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/machine/thread_pool.h"
#include "comm/ranks.h"
#include "foretoken/result.h"
#include "kernels/kernels.h"

namespace foretoken::model {

struct RankSpeeds {
  // Weights that each rank reads and multiplies, at the same time as the others.
  std::vector<double> bytes_per_second;
  double gather_us = 0;  // of a few KB

  int n_ranks() const { return static_cast<int>(bytes_per_second.size()); }
};

// Each rank multiplies a matrix that no cache holds, on all threads of its pool, which takes a few
// tenths of a second and at most 128 MiB for that time. All ranks get the same result. Ranks of one machine
// with as many threads get the mean of what they measured: they differ by chance. One rank alone
// measures nothing. Error: kRankLost.
[[nodiscard]] Result<RankSpeeds> MeasureSpeeds(comm::Ranks& ranks, const kernels::Kernels& kernels,
                                               ThreadPool& pool);

// The speeds of a Division, from 1 to 10. Ranks within 10 % of each other count as equal, so that
// they need the same memory, and keep the same tiles from one start to the next.
[[nodiscard]] std::vector<int> SharesOf(std::span<const double> bytes_per_second);

// What a pass of a network with few rows costs.
struct PassSize {
  std::int64_t bytes = 0;  // weights that it reads
  int n_layers = 0;
};

// Whether the ranks compute such a pass sooner together than rank 0 does alone while the others
// wait. So small draft models live on rank 0.
[[nodiscard]] bool WorthDividing(const PassSize& size, const RankSpeeds& speeds);

}  // namespace foretoken::model
