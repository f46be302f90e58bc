// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/heads/local_convolution.h"

#include <algorithm>
#include <utility>

#include "model/blocks/product.h"

namespace foretoken::model {

LocalConvolution::LocalConvolution(const Workspace& space, const LocalConvolutionConfig& config,
                                   const LocalConvolutionWeights& weights, const LayerPlace& place,
                                   const Entry& entry, std::unique_ptr<Block> part)
    : space_(space),
      config_(config),
      weights_(weights),
      place_(place),
      entry_(entry),
      part_(std::move(part)),
      residual_(space.scratch.residual.View(place.dim)),
      h_(space.scratch.pair.View(place.dim)),
      normed_(space.scratch.normed.View(place.dim)),
      delta_(space.scratch.delta.View(place.dim)),
      coefficients_(space.scratch.coefficients.View(config.coefficients(place.dim))),
      gather_coefficients_(space, coefficients_, GatheredForm::kFloat,
                           ColumnsByRank(space.division, coefficients_.width)) {}

void LocalConvolution::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&LocalConvolution::Norm>(*this, Split::kRows));
  phases.push_back(PhaseOf<&LocalConvolution::Multiply>(*this, Split::kOther));
  gather_coefficients_.AddPhases(phases);
  phases.push_back(PhaseOf<&LocalConvolution::ConvolveInput>(*this, Split::kOther));
  part_->AddPhases(phases);
  phases.push_back(PhaseOf<&LocalConvolution::ConvolveOutput>(*this, Split::kOther));
}

void LocalConvolution::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    space_.kernels.rms_norm(residual_.Row(row), entry_.norm, place_.dim, place_.norm_eps,
                            h_.Row(row));
  if (weights_.coefficients.quantised()) Quantise(space_.kernels, h_, rows);
}

void LocalConvolution::Multiply(const Pass& pass, int thread) const noexcept {
  MultiplyShare(space_, weights_.coefficients, h_, pass.n_rows(), coefficients_, thread);
}

void LocalConvolution::ConvolveInput(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  Convolve(h_, kBefore, pass, rows);
  if (entry_.quantised) Quantise(space_.kernels, normed_, rows);
}

// What the part read is not needed any more, so its memory serves.
void LocalConvolution::ConvolveOutput(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  Convolve(delta_, kBehind, pass, rows);
  for (int row = rows.begin; row < rows.end; ++row) {
    const float* const y = normed_.Row(row);
    float* const x = residual_.Row(row);
    for (int i = 0; i < place_.dim; ++i) x[i] += place_.residual_scale * y[i];
  }
}

void LocalConvolution::Convolve(const Activation& x, Side side, const Pass& pass,
                                ThreadPool::Share rows) const noexcept {
  for (const kv::Segment& segment : pass.segments) {
    const int begin = std::max(rows.begin, segment.row_begin),
              end = std::min(rows.end, segment.row_begin + segment.n_rows);
    for (int row = begin; row < end; ++row) ConvolveRow(x, side, row, row - segment.row_begin);
  }
}

void LocalConvolution::ConvolveRow(const Activation& x, Side side, int row,
                                   int offset) const noexcept {
  const int dim = place_.dim, groups = config_.groups(dim);
  float* const y = normed_.Row(row);
  for (int tap = 0; tap < config_.taps && tap <= offset; ++tap) {
    const int at = side * config_.taps + tap;
    const float* const base = weights_.base + std::int64_t{at} * dim;
    const float* const change = coefficients_.Row(row) + std::int64_t{at} * groups;
    const float* const in = x.Row(row - tap);
    for (int i = 0, group = 0; group < groups; ++group) {
      const int end = i + config_.group;
      for (; i < end; ++i) {
        const float term = (base[i] + change[group]) * in[i];
        y[i] = tap == 0 ? term : y[i] + term;
      }
    }
  }
}

}  // namespace foretoken::model
