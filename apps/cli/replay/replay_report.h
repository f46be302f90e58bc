// SPDX-License-Identifier: Apache-2.0
// cli/replay/replay_report.h: the results of `replay`, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "foretoken/tools/replay.h"

namespace foretoken::cli {

struct ReplayRow {
  ReplayOptions options;
  ReplayResult result;

  std::string name() const;  // "plain", "fixed K 4", "cost-model, at most 8"
};

struct ReplayReport {
  const RunTrace* trace = nullptr;
  std::vector<MeasuredSetting> measured;
  std::vector<ReplayRow> rows;
  // Tokens per second of plain decoding, as replayed.
  double plain = 0;
};

// At most 100 columns.
std::string ReplayTable(const ReplayReport& report);
std::string ReplayJson(const ReplayReport& report);

}  // namespace foretoken::cli
