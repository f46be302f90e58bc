// SPDX-License-Identifier: Apache-2.0
// model/batch.h: the rows of one pass.
#pragma once

#include <span>
#include <vector>

#include "base/ids.h"

namespace foretoken::model {

// Consecutive rows of one sequence: row_begin + i is the token at first_position + i.
struct Segment {
  SeqId seq = 0;
  int row_begin = 0, n_rows = 0;
  Pos first_position = 0;
};

// What a target keeps of its hidden states for a drafter: one row of floats for each row of a pass,
// the parts in this order.
struct FeatureRequest {
  std::vector<int> layers;  // the residual stream that enters a block; n_layers: leaves the last
  bool normed = false;      // the last block's output after output_norm

  int parts() const { return static_cast<int>(layers.size()) + normed; }
};

struct Batch {
  std::span<const Token> tokens;      // [n_rows]
  std::span<const Segment> segments;  // cover all rows in order; a sequence appears once
  std::span<const int> logit_rows;    // ascending rows whose logits are wanted
  const float* features = nullptr;    // heads: [n_rows, features or dim], contiguous
  bool own_features =
      false;  // heads: `features` are the head's own of an earlier row ([n_rows, dim])
  int n_rows() const { return static_cast<int>(tokens.size()); }
};

}  // namespace foretoken::model
