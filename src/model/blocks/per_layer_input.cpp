// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/per_layer_input.h"

#include <algorithm>
#include <cmath>

namespace foretoken::model {
namespace {

float Root(double x) {
  return static_cast<float>(std::sqrt(x));
}

// The residual stream, and its int8 form where `w` reads it.
void CopyRows(const Workspace& space, const Linear& w, const Activation& residual,
              const Activation& to, ThreadPool::Share rows) noexcept {
  for (int row = rows.begin; row < rows.end; ++row)
    std::copy_n(residual.Row(row), residual.width, to.Row(row));
  if (w.quantised()) Quantise(space.kernels, to, rows);
}

}  // namespace

PerLayerInputs::PerLayerInputs(const Workspace& space, const ModelConfig& config,
                               const Weights& weights)
    : space_(space),
      weights_(weights),
      own_(*weights.layer_inputs),
      n_layers_(config.n_layers()),
      width_(config.layer_input),
      norm_eps_(config.norm_eps),
      projection_scale_(Root(1.0 / config.dim)),
      embedding_scale_(Root(config.layer_input)),
      residual_(space.scratch.residual.View(config.dim)),
      normed_(space.scratch.normed.View(config.dim)),
      inputs_(space.scratch.layer_inputs.View(n_layers_ * width_)),
      embeddings_(space.scratch.layer_embeddings.View(n_layers_ * width_)),
      gather_inputs_(space, inputs_, GatheredForm::kFloat,
                     ColumnsByRank(space.division, n_layers_ * width_)) {}

void PerLayerInputs::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&PerLayerInputs::Copy>(*this, Split::kRows));
  phases.push_back(PhaseOf<&PerLayerInputs::Project>(*this, Split::kOther));
  gather_inputs_.AddPhases(phases);
  phases.push_back(PhaseOf<&PerLayerInputs::Mix>(*this, Split::kRows));
}

void PerLayerInputs::Copy(const Pass& pass, int thread) const noexcept {
  CopyRows(space_, own_.projection, residual_, normed_, space_.RowsOf(pass, thread));
}

void PerLayerInputs::Project(const Pass& pass, int thread) const noexcept {
  MultiplyShare(space_, own_.projection, normed_, pass.n_rows(), inputs_, thread);
}

void PerLayerInputs::Mix(const Pass& pass, int thread) const noexcept {
  static const float half = Root(0.5);
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row) {
    float *const x = inputs_.Row(row), *const embedding = embeddings_.Row(row);
    weights_.EmbedBeside(pass.tokens[static_cast<std::size_t>(row)], embedding);
    space_.kernels.scale(embedding, inputs_.width, embedding_scale_);
    space_.kernels.scale(x, inputs_.width, projection_scale_);
    for (int layer = 0; layer < n_layers_; ++layer) {
      float* const part = x + layer * width_;
      space_.kernels.rms_norm(part, own_.norm, width_, norm_eps_, part);
    }
    for (int i = 0; i < inputs_.width; ++i) x[i] = (x[i] + embedding[i]) * half;
  }
}

PerLayerInput::PerLayerInput(const Workspace& space, const ModelConfig& config,
                             const PerLayerInputWeights& weights, const LayerPlace& place)
    : space_(space),
      weights_(weights),
      addition_{
          .norm = weights.post_norm, .norm_eps = place.norm_eps, .scale = place.residual_scale},
      first_(place.layer * config.layer_input),
      residual_(space.scratch.residual.View(place.dim)),
      normed_(space.scratch.normed.View(place.dim)),
      inputs_(space.scratch.layer_inputs.View(config.n_layers() * config.layer_input)),
      gate_(space.scratch.gate.View(config.layer_input)) {}

void PerLayerInput::AddPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&PerLayerInput::Copy>(*this, Split::kRows));
  phases.push_back(PhaseOf<&PerLayerInput::Gate>(*this, Split::kOther));
  phases.push_back(PhaseOf<&PerLayerInput::Project>(*this, Split::kOther));
  phases.push_back(PhaseOf<&PerLayerInput::AddNormed>(*this, Split::kRows));
}

void PerLayerInput::Copy(const Pass& pass, int thread) const noexcept {
  CopyRows(space_, weights_.gate, residual_, normed_, space_.RowsOf(pass, thread));
}

// A thread computes whole blocks of columns, so it can finish them alone.
void PerLayerInput::Gate(const Pass& pass, int thread) const noexcept {
  const int rows = pass.n_rows();
  const auto share =
      space_.pool.ShareOf(weights_.gate.n_tiles, thread, tensor::kBlock / tensor::kTileOutputs);
  Multiply(space_.kernels, weights_.gate, normed_, rows, gate_, false, share.begin, share.end);
  const int begin = share.begin * tensor::kTileOutputs,
            end = std::min(share.end * tensor::kTileOutputs, gate_.width);
  if (begin >= end) return;
  for (int row = 0; row < rows; ++row) {
    float* const gate = gate_.Row(row) + begin;
    space_.kernels.gelu_mul(gate, inputs_.Row(row) + first_ + begin, end - begin, gate);
  }
  if (weights_.projection.quantised()) Quantise(space_.kernels, gate_, 0, rows, begin, end);
}

void PerLayerInput::Project(const Pass& pass, int thread) const noexcept {
  AddProduct(space_, weights_.projection, gate_, pass.n_rows(), addition_, residual_, thread);
}

void PerLayerInput::AddNormed(const Pass& pass, int thread) const noexcept {
  model::AddNormed(space_, addition_, residual_, space_.RowsOf(pass, thread));
}

}  // namespace foretoken::model
