// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/recurrent/short_conv.h"

#include <algorithm>

namespace foretoken::model {

ShortConv::ShortConv(const Workspace& space, const ShortConvConfig& config,
                     const ShortConvWeights& weights, const LayerPlace& place)
    : space_(space),
      weights_(weights),
      place_(place),
      addition_{.scale = place.residual_scale},
      residual_(space.scratch.residual.View(place.dim)),
      normed_(space.scratch.normed.View(place.dim)),
      b_(space.scratch.q.View(place.dim)),
      c_(space.scratch.k.View(place.dim)),
      u_(space.scratch.v.View(place.dim)),
      y_(space.scratch.attention.View(place.dim)),
      convolution_(space,
                   {.layer = place.layer,
                    .taps = config.taps,
                    .width = place.dim,
                    .first = space.division.Own(place.dim, tensor::kBlock).begin},
                   u_, weights.taps),
      gather_y_(space, y_, FormFor(weights.out), ColumnsByRank(space.division, place.dim)),
      gather_output_(space, OutputOf(space, addition_, residual_), GatheredForm::kFloat,
                     ColumnsByRank(space.division, place.dim)) {}

void ShortConv::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&ShortConv::Norm>(*this, Split::kRows));
  phases.push_back(PhaseOf<&ShortConv::Convolve>(*this, Split::kOther));
  gather_y_.AddPhases(phases);
  phases.push_back(PhaseOf<&ShortConv::Output>(*this, Split::kOther));
  gather_output_.AddPhases(phases);
}

void ShortConv::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    space_.kernels.rms_norm(residual_.Row(row), weights_.norm, place_.dim, place_.norm_eps,
                            normed_.Row(row));
  if (weights_.b.quantised()) Quantise(space_.kernels, normed_, rows);
}

// A thread computes the same columns of all three products, so it can convolve them alone.
void ShortConv::Convolve(const Pass& pass, int thread) const noexcept {
  const int rows = pass.n_rows();
  const auto share = space_.TilesOf(weights_.b, thread, tensor::kBlock / tensor::kTileOutputs);
  const Columns columns = {share.begin * tensor::kTileOutputs,
                           std::min(share.end * tensor::kTileOutputs, y_.width)};
  if (columns.begin >= columns.end) return;
  const auto multiply = [&](const Linear& w, const Activation& y) {
    Multiply(space_.kernels, w, normed_, rows, y, false, share.begin, share.end);
  };
  multiply(weights_.b, b_), multiply(weights_.c, c_), multiply(weights_.u, u_);
  for (int row = 0; row < rows; ++row) {
    const float* const b = b_.Row(row);
    float* const u = u_.Row(row);
    for (int i = columns.begin; i < columns.end; ++i) u[i] *= b[i];
  }
  for (const kv::Segment& segment : pass.segments) ConvolveSegment(segment, columns);
  if (weights_.out.quantised()) Quantise(space_.kernels, y_, 0, rows, columns.begin, columns.end);
}

void ShortConv::ConvolveSegment(const kv::Segment& segment, Columns columns) const noexcept {
  const int n = columns.end - columns.begin;
  Convolution::Inputs inputs;
  for (int i = 0; i < segment.n_rows; i += inputs.n_positions) {
    const int most = std::min(kMostPositions, segment.n_rows - i), row = segment.row_begin + i;
    convolution_.Find(segment, segment.first_position + i, most, inputs);
    convolution_.Run(inputs, columns.begin, n, false, y_.Row(row) + columns.begin, y_.stride);
  }
  for (int row = segment.row_begin; row < segment.row_begin + segment.n_rows; ++row) {
    float* const y = y_.Row(row) + columns.begin;
    const float* const c = c_.Row(row) + columns.begin;
    for (int j = 0; j < n; ++j) y[j] *= c[j];
  }
  convolution_.Keep(segment, columns.begin, columns.end);
}

void ShortConv::Output(const Pass& pass, int thread) const noexcept {
  AddProduct(space_, weights_.out, y_, pass.n_rows(), addition_, residual_, thread);
}

}  // namespace foretoken::model
