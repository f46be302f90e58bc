// SPDX-License-Identifier: Apache-2.0
// server/api/speculation_replies.h: what the server says of its speculation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "foretoken/async_engine.h"
#include "server/totals.h"

namespace foretoken::server {

// GET /v1/speculation.
struct SpeculationState {
  const EngineSummary* engine = nullptr;
  Totals::Sum totals;
  std::optional<double> recent_speedup;
  double plain_ms_per_token = 0;  // 0: not known
  std::vector<RowCost> pass_costs = {};
  AsyncLoad load;
  int parallel = 0;
  CopyProgress copy;
};
std::string SpeculationJson(const SpeculationState& state);

}  // namespace foretoken::server
