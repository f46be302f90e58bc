// SPDX-License-Identifier: Apache-2.0
#include "round/stats_total.h"

namespace foretoken::round {
namespace {

void Subtract(auto& from, const auto& other) {
  from -= other;
}
// REQUIRES: `from` counts everything that `other` does.
void Subtract(std::vector<std::int64_t>& from, const std::vector<std::int64_t>& other) {
  for (std::size_t i = 0; i < other.size(); ++i) from[i] -= other[i];
}

}  // namespace

SpeculationStats StatsTotal::Read(const SpeculationStats& running) const {
  SpeculationStats stats = ended_;
  stats.Add(running);
  SpeculationStats::VisitSums([&](auto member) { Subtract(stats.*member, before_.*member); });
  return stats;
}

void StatsTotal::Reset(const SpeculationStats& running) {
  before_ = ended_;
  before_.Add(running);
}

}  // namespace foretoken::round
