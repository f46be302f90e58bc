// SPDX-License-Identifier: Apache-2.0
// kv/segment.h: the rows of one sequence in a pass.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "tensor/block_layout.h"

namespace foretoken::kv {

// Blocks that so many positions need.
constexpr int BlocksFor(int positions) noexcept {
  return (positions + tensor::kKvBlock - 1) / tensor::kKvBlock;
}

// Consecutive rows of one sequence: row row_begin + i of the pass is the token at position
// first_position + i of the sequence.
struct Segment {
  SeqId seq = 0;
  int row_begin = 0, n_rows = 0;
  Pos first_position = 0;  // as many positions are committed
  // The blocks of the sequence in order of position, those of the pass's rows included. A
  // Transaction fills this in.
  std::span<const std::int32_t> blocks = {};
  // The same for layers that see a window, where these have a memory of their own. Blocks of which no
  // row sees a position are -1.
  std::span<const std::int32_t> window_blocks = {};
};

}  // namespace foretoken::kv
