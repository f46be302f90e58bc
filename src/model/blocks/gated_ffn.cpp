// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/gated_ffn.h"

#include <algorithm>

namespace foretoken::model {

GatedFfn::GatedFfn(const Workspace& space, const GatedFfnConfig& config,
                   const GatedFfnWeights& weights, const LayerPlace& place, const Activation& to)
    : space_(space),
      weights_(weights),
      place_(place),
      addition_{.norm = weights.post_norm,
                .norm_eps = place.norm_eps,
                .scale = place.residual_scale,
                .apart = place.convolved},
      gate_function_(KernelOf(config.function, space.kernels)),
      residual_(space.scratch.residual.View(place.dim)),
      to_(to),
      normed_(space.scratch.normed.View(place.dim)),
      gate_(space.scratch.gate.View(config.width)),
      up_(space.scratch.up.View(config.width)),
      gather_gate_(space, gate_, FormFor(weights.down),
                   ColumnsByRank(space.division, config.width)),
      gather_output_(space, OutputOf(space, addition_, to), GatheredForm::kFloat,
                     ColumnsByRank(space.division, place.dim)) {}

void GatedFfn::AddPhases(std::vector<Phase>& phases) const {
  if (!place_.convolved) phases.push_back(PhaseOf<&GatedFfn::Norm>(*this, Split::kRows));
  phases.push_back(PhaseOf<&GatedFfn::GateUp>(*this, Split::kOther));
  gather_gate_.AddPhases(phases);
  phases.push_back(PhaseOf<&GatedFfn::Down>(*this, Split::kOther));
  gather_output_.AddPhases(phases);
  if (weights_.post_norm != nullptr)
    phases.push_back(PhaseOf<&GatedFfn::AddNormed>(*this, Split::kRows));
}

void GatedFfn::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    NormOrCopy(space_, residual_.Row(row), weights_.norm, place_.dim, place_.norm_eps,
               normed_.Row(row));
  if (weights_.gate.quantised() || weights_.up.quantised()) Quantise(space_.kernels, normed_, rows);
}

// A thread computes the same columns of both matrices, whole blocks of them, so it can finish them
// alone.
void GatedFfn::GateUp(const Pass& pass, int thread) const noexcept {
  const kernels::Kernels& kernels = space_.kernels;
  const int rows = pass.n_rows();
  const auto share = space_.TilesOf(weights_.gate, thread, tensor::kBlock / tensor::kTileOutputs);
  Multiply(kernels, weights_.gate, normed_, rows, gate_, false, share.begin, share.end);
  if (weights_.up.k != 0)
    Multiply(kernels, weights_.up, normed_, rows, up_, false, share.begin, share.end);
  const int begin = share.begin * tensor::kTileOutputs,
            end = std::min(share.end * tensor::kTileOutputs, gate_.width);
  if (begin >= end) return;
  for (int row = 0; row < rows; ++row) {
    float* const gate = gate_.Row(row) + begin;
    gate_function_(gate, up_.Row(row) + begin, end - begin, gate);
  }
  if (weights_.down.quantised()) Quantise(kernels, gate_, 0, rows, begin, end);
}

void GatedFfn::Down(const Pass& pass, int thread) const noexcept {
  AddProduct(space_, weights_.down, gate_, pass.n_rows(), addition_, to_, thread);
}

void GatedFfn::AddNormed(const Pass& pass, int thread) const noexcept {
  model::AddNormed(space_, addition_, to_, space_.RowsOf(pass, thread));
}

}  // namespace foretoken::model
