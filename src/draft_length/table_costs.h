// SPDX-License-Identifier: Apache-2.0
// draft_length/table_costs.h: what passes and drafts cost as far as the sizes of the model files tell, in
// units of a target pass of one row: the same on every machine, for lengths that no clock may
// change.
#pragma once

#include <cstdint>
#include <span>

#include "draft_length/round_costs.h"

namespace foretoken::draft_length {

struct TableDrafter {
  int drafter = 0;              // its index
  std::int64_t file_bytes = 0;  // 0: it has no model file of its own
  bool head = false;            // it shares the target's output matrix
};
void StartWithTable(RoundCosts& costs, std::int64_t target_bytes,
                    std::span<const TableDrafter> drafters);

}  // namespace foretoken::draft_length
