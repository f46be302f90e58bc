// SPDX-License-Identifier: Apache-2.0
// model/batch.h: the rows of one pass.
#pragma once

#include <span>

#include "base/ids.h"

namespace foretoken::model {

// Consecutive rows of one sequence: row_begin + i is the token at first_position + i.
struct Segment {
  SeqId seq = 0;
  int row_begin = 0, n_rows = 0;
  Pos first_position = 0;
};

struct Batch {
  std::span<const Token> tokens;      // [n_rows]
  std::span<const Segment> segments;  // cover all rows in order; a sequence appears once
  std::span<const int> logit_rows;    // ascending rows whose logits are wanted
  int n_rows() const { return static_cast<int>(tokens.size()); }
};

}  // namespace foretoken::model
