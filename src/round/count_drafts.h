// SPDX-License-Identifier: Apache-2.0
// round/count_drafts.h: what the drafts of a round add to statistics.
#pragma once

#include <cstddef>

#include "foretoken/stats.h"

namespace foretoken::round {

// drafted: 0: a plain round. accepted: drafts that were kept; verified: those that were compared.
// REQUIRES: the lists of `stats` have room for so many drafts.
inline void CountDrafts(int drafted, int accepted, int verified, SpeculationStats& stats) noexcept {
  ++stats.rounds;
  stats.draft_rounds += drafted > 0;
  stats.drafted += drafted;
  stats.accepted += accepted;
  ++stats.k_histogram[static_cast<std::size_t>(drafted)];
  for (int d = 0; d < drafted; ++d) {
    const auto at = static_cast<std::size_t>(d);
    ++stats.drafted_per_position[at];
    stats.verified_per_position[at] += d < verified;
    stats.accepted_per_position[at] += d < accepted;
  }
}

}  // namespace foretoken::round
