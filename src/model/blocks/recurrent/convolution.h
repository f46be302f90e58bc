// SPDX-License-Identifier: Apache-2.0
// model/blocks/recurrent/convolution.h: a convolution of each column over the newest positions, whose
// inputs come from the pass and from what was kept of earlier passes.
#pragma once

#include "kv/segment.h"
#include "model/blocks/phase.h"
#include "model/blocks/recurrent/positions.h"

namespace foretoken::model {

// The columns of `a` from `column` on, where a tile begins.
inline Activation ColumnsFrom(const Activation& a, int column) {
  return {.x = a.x + column, .stride = a.stride, .width = a.width - column};
}

class Convolution {
 public:
  struct Shape {
    int layer = 0;
    int taps = 0;   // positions that a row sees, its own included
    int width = 0;  // columns of the weights
    int first = 0;  // the column that the first kept number of a position belongs to
  };
  // Where the inputs of consecutive positions lie, and of those before that these see. Null: the text
  // has no such position.
  struct Inputs {
    int n_positions = 0;
    const float* x[kMostTaps - 1 + kMostPositions];
  };
  // inputs: of the pass, [rows, columns]. weights: [taps, width], the oldest position's first. bias:
  // [width], or null.
  Convolution(const Workspace& space, const Shape& shape, const Activation& inputs,
              const float* weights, const float* bias = nullptr);

  // The inputs of n positions from `first` on.
  void Find(const kv::Segment& segment, Pos first, int n, Inputs& inputs) const noexcept;
  // One number of each position: column `column` of its input.
  void Gather(const Inputs& inputs, int column, float* y) const noexcept;
  // Columns [column, column + n) of each position, one row every `stride` numbers; with SiLU behind
  // it where `activates` is set.
  void Run(const Inputs& inputs, int column, int n, bool activates, float* y,
           std::int64_t stride) const noexcept;
  // Keeps columns [begin, end) of what later passes may read. REQUIRES: no thread reads inputs of
  // these columns any more in this pass.
  void Keep(const kv::Segment& segment, int begin, int end) const noexcept;

 private:
  const float* Input(const kv::Segment& segment, Pos position) const noexcept;
  float* Kept(SeqId seq, Pos position) const noexcept {
    return states_.Input(shape_.layer, seq, position) - shape_.first;
  }

  const kernels::Kernels& kernels_;
  StateMemory& states_;
  const Shape shape_;
  const Activation inputs_;
  const float *const weights_, *const bias_;
};

}  // namespace foretoken::model
