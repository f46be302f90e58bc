// SPDX-License-Identifier: Apache-2.0
#include "foretoken/stats.h"

#include <algorithm>
#include <numeric>

namespace foretoken {

void EngineCounts::Ratios::Add(double ratio) noexcept {
  const auto above = std::lower_bound(kRatioBounds.begin(), kRatioBounds.end(), ratio);
  ++counts[static_cast<std::size_t>(above - kRatioBounds.begin())];
  sum += ratio;
}

std::int64_t EngineCounts::rounds() const noexcept {
  return std::accumulate(chosen.begin(), chosen.end(), std::int64_t{0});
}

}  // namespace foretoken
