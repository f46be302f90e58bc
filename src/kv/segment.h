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

// Positions whose inputs a copy of a recurrent state has beside it.
inline constexpr int kCopiedInputs = 8;

// What a pass does to the recurrent state of a sequence. Before the pass the state has taken in the
// positions before `from`, and the runner has kept the inputs of the committed positions from there on.
// The pass takes in [from, to) for good. It computes the positions from `to` on with a copy of the
// state, and keeps their inputs, so that a later pass can take in those of them that were committed.
// Networks without recurrent layers pay no attention to it.
//
// A runner also keeps copies of states (kv/checkpoints.h). A pass may begin with one of them in place of
// the sequence's own state: the copy was made when the positions before `from` had been taken in. And
// when the pass has run, a copy may be made of what has taken in the positions before `to`. All
// sequences of a pass begin before any copy is made; copies are made in the order of the segments. A
// copy has the inputs of kCopiedInputs positions from `to` on, as far as these were computed.
struct StateMove {
  Pos from = 0, to = 0;
  std::int32_t source = -1;      // the copy that the pass begins with; -1: the sequence's state
  std::int32_t checkpoint = -1;  // the copy that is made behind the pass; -1: none
};

// Consecutive rows of one sequence: row row_begin + i of the pass is the token at position
// first_position + i of the sequence.
struct Segment {
  SeqId seq = 0;
  int row_begin = 0, n_rows = 0;
  Pos first_position = 0;  // as many positions are committed
  // So many of the rows, the first ones, will be committed for certain. Only then can their positions
  // not be taken back one by one: the state of recurrent layers has taken them in.
  int n_certain = 0;
  bool ends_prompt = false;  // the certain rows are the last ones of a prompt
  // The blocks of the sequence in order of position, those of the pass's rows included. A
  // Transaction fills this in.
  std::span<const std::int32_t> blocks = {};
  // Its blocks of layers that see a window, where these have a memory of their own. Blocks of which no
  // row sees a position are -1.
  std::span<const std::int32_t> window_blocks = {};
  // The block whose positions before first_position the sequence's own block of that position gets
  // before any row of the pass is computed; -1: it has them. The same of layers that see a window. A
  // Transaction fills both in.
  std::int32_t rows_of = -1, window_rows_of = -1;
  StateMove state = {};  // a Transaction fills this in
};

}  // namespace foretoken::kv
