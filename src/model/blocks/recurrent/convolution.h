// SPDX-License-Identifier: Apache-2.0
// model/blocks/recurrent/convolution.h: a convolution of each column over the newest positions, whose
// inputs come from the pass and from what was kept of earlier passes.
#pragma once

#include "kv/segment.h"
#include "model/blocks/phase.h"

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
  // inputs: of the pass, [rows, columns]. weights: [taps, width], the oldest position's first. bias:
  // [width], or null.
  Convolution(const Workspace& space, const Shape& shape, const Activation& inputs,
              const float* weights, const float* bias = nullptr);

  // The inputs of a position, by column.
  const float* Input(const kv::Segment& segment, Pos position) const noexcept;
  // For n columns: y = bias; from the oldest position to the newest, as far as the text has them:
  // y = y + tap * input.
  void Run(const kv::Segment& segment, Pos position, int column, int n, float* y) const noexcept;
  // Keeps columns [begin, end) of what later passes may read. REQUIRES: no thread reads inputs of
  // these columns any more in this pass.
  void Keep(const kv::Segment& segment, int begin, int end) const noexcept;

 private:
  float* Kept(SeqId seq, Pos position) const noexcept {
    return states_.Input(shape_.layer, seq, position) - shape_.first;
  }

  StateMemory& states_;
  const Shape shape_;
  const Activation inputs_;
  const float *const weights_, *const bias_;
};

}  // namespace foretoken::model
