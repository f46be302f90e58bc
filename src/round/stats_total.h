// SPDX-License-Identifier: Apache-2.0
// round/stats_total.h: the counters of all requests, those that still run included, since a reset.
#pragma once

#include "foretoken/stats.h"

namespace foretoken::round {

class StatsTotal {
 public:
  void Add(const SpeculationStats& ended) { ended_.Add(ended); }
  // running: the sum over requests that have not ended.
  SpeculationStats Read(const SpeculationStats& running) const;
  void Reset(const SpeculationStats& running);

 private:
  SpeculationStats ended_, before_;  // before_: all that was counted up to the reset
};

}  // namespace foretoken::round
