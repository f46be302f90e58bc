// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/recurrent/convolution.h"

#include <algorithm>

namespace foretoken::model {

Convolution::Convolution(const Workspace& space, const Shape& shape, const Activation& inputs,
                         const float* weights, const float* bias)
    : states_(space.states), shape_(shape), inputs_(inputs), weights_(weights), bias_(bias) {}

const float* Convolution::Input(const kv::Segment& segment, Pos position) const noexcept {
  const int row = position - segment.first_position;
  return row >= 0 ? inputs_.Row(segment.row_begin + row) : Kept(segment.seq, position);
}

void Convolution::Run(const kv::Segment& segment, Pos position, int column, int n,
                      float* y) const noexcept {
  if (bias_ == nullptr)
    std::fill_n(y, n, 0.0f);
  else
    std::copy_n(bias_ + column, n, y);
  const int before = shape_.taps - 1;
  for (int j = std::max(0, before - position); j < shape_.taps; ++j) {
    const float* const tap = weights_ + std::int64_t{j} * shape_.width + column;
    const float* const x = Input(segment, position - before + j) + column;
    for (int i = 0; i < n; ++i) y[i] += tap[i] * x[i];
  }
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
