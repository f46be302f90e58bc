// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/recurrent/convolution.h"

#include <algorithm>

namespace foretoken::model {

Convolution::Convolution(const Workspace& space, const Shape& shape, const Activation& inputs,
                         const float* weights, const float* bias)
    : kernels_(space.kernels),
      states_(space.states),
      shape_(shape),
      inputs_(inputs),
      weights_(weights),
      bias_(bias) {}

const float* Convolution::Input(const kv::Segment& segment, Pos position) const noexcept {
  const int row = position - segment.first_position;
  return row >= 0 ? inputs_.Row(segment.row_begin + row) : Kept(segment.seq, position);
}

void Convolution::Find(const kv::Segment& segment, Pos first, int n,
                       Inputs& inputs) const noexcept {
  inputs.n_positions = n;
  const Pos oldest = first - (shape_.taps - 1);
  for (Pos position = oldest; position < first + n; ++position)
    inputs.x[position - oldest] = position < 0 ? nullptr : Input(segment, position);
}

void Convolution::Gather(const Inputs& inputs, int column, float* y) const noexcept {
  for (int i = 0; i < inputs.n_positions; ++i) y[i] = inputs.x[shape_.taps - 1 + i][column];
}

void Convolution::Run(const Inputs& inputs, int column, int n, bool activates, float* y,
                      std::int64_t stride) const noexcept {
  kernels_.convolve({.x = inputs.x,
                     .weights = weights_,
                     .weights_stride = shape_.width,
                     .bias = bias_,
                     .n_taps = shape_.taps,
                     .n_steps = inputs.n_positions,
                     .column = column,
                     .n = n,
                     .activates = activates,
                     .y = y,
                     .y_stride = stride});
}

// The state takes in the positions before `to`, so only the convolution reads earlier ones.
void Convolution::Keep(const kv::Segment& segment, int begin, int end) const noexcept {
  const int first = segment.state.to - (shape_.taps - 1) - segment.first_position;
  for (int i = std::max(0, first); i < segment.n_rows; ++i) {
    const float* const x = inputs_.Row(segment.row_begin + i);
    std::copy(x + begin, x + end, Kept(segment.seq, segment.first_position + i) + begin);
  }
}

}  // namespace foretoken::model
