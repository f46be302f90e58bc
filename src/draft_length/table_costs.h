// SPDX-License-Identifier: Apache-2.0
// draft_length/table_costs.h: estimates the cost of passes and drafts from the sizes of the model
// files, in units of a target pass of one row. The result is the same on every machine, for lengths
// that no clock may change.
#pragma once

#include <cstdint>
#include <span>

#include "draft_length/round_costs.h"

namespace foretoken::draft_length {

struct TableDrafter {
  int drafter = 0;         // its index
  std::int64_t bytes = 0;  // of its model; 0: it has none
  bool head = false;       // it uses the target's output matrix
};
// A target with experts: the experts of more rows cost what their bytes are worth.
struct TableExperts {
  ExpertShape shape;
  std::int64_t expert_bytes = 0;  // of one expert
};
// target_bytes: of the file, or with experts those that a pass of one row reads.
void StartWithTable(RoundCosts& costs, std::int64_t target_bytes,
                    std::span<const TableDrafter> drafters, const TableExperts& experts = {});

}  // namespace foretoken::draft_length
