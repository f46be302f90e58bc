// SPDX-License-Identifier: Apache-2.0
#include "round/stats_total.h"

namespace foretoken::round {
namespace {

void Subtract(std::vector<std::int64_t>& from, const std::vector<std::int64_t>& other) {
  for (std::size_t i = 0; i < other.size(); ++i) from[i] -= other[i];
}

// REQUIRES: `from` counts everything that `other` does.
void Subtract(SpeculationStats& from, const SpeculationStats& other) {
  constexpr std::int64_t SpeculationStats::*kCounts[] = {
      &SpeculationStats::rounds,          &SpeculationStats::draft_rounds,
      &SpeculationStats::drafted,         &SpeculationStats::accepted,
      &SpeculationStats::recovered,       &SpeculationStats::bonus,
      &SpeculationStats::plain,           &SpeculationStats::emitted,
      &SpeculationStats::rolled_back,     &SpeculationStats::draft_forwards,
      &SpeculationStats::target_forwards, &SpeculationStats::accepted_relaxed};
  constexpr double SpeculationStats::*kTimes[] = {
      &SpeculationStats::draft_ms, &SpeculationStats::verify_ms, &SpeculationStats::overhead_ms,
      &SpeculationStats::draft_prompt_ms};
  for (const auto count : kCounts) from.*count -= other.*count;
  for (const auto time : kTimes) from.*time -= other.*time;
  Subtract(from.drafted_per_position, other.drafted_per_position);
  Subtract(from.verified_per_position, other.verified_per_position);
  Subtract(from.accepted_per_position, other.accepted_per_position);
  Subtract(from.k_histogram, other.k_histogram);
}

}  // namespace

SpeculationStats StatsTotal::Read(const SpeculationStats& running) const {
  SpeculationStats stats = ended_;
  stats.Add(running);
  Subtract(stats, before_);
  return stats;
}

void StatsTotal::Reset(const SpeculationStats& running) {
  before_ = ended_;
  before_.Add(running);
}

}  // namespace foretoken::round
