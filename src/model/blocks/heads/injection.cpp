// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/heads/injection.h"

#include <algorithm>

#include "model/blocks/product.h"

namespace foretoken::model {
namespace {

bool AnyLayerQuantises(const Weights& weights) {
  return std::any_of(weights.layers.begin(), weights.layers.end(), [](const LayerWeights& layer) {
    const auto& attention = std::get<AttentionWeights>(layer.mixer);
    return attention.k.quantised() || attention.v.quantised();
  });
}

}  // namespace

Injection::Injection(const Workspace& space, const ModelConfig& config, const Weights& weights)
    : space_(space),
      head_(*weights.head),
      norm_eps_(config.norm_eps),
      quantise_(AnyLayerQuantises(weights)),
      features_(space.scratch.mixed.View(config.head->features_width())),
      residual_(space.scratch.residual.View(config.dim)),
      normed_(space.scratch.normed.View(config.dim)),
      gather_mixed_(space, residual_, GatheredForm::kFloat,
                    ColumnsByRank(space.division, config.dim)) {}

void Injection::AddInjectionPhases(std::vector<Phase>& phases) const {
  phases.push_back(PhaseOf<&Injection::TakeFeatures>(*this, Split::kRows));
  phases.push_back(PhaseOf<&Injection::Mix>(*this, Split::kOther));
  gather_mixed_.AddPhases(phases);
  phases.push_back(PhaseOf<&Injection::Norm>(*this, Split::kRows));
}

void Injection::TakeFeatures(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    std::copy_n(pass.features + std::int64_t{row} * features_.width, features_.width,
                features_.Row(row));
  if (head_.mix.quantised()) Quantise(space_.kernels, features_, rows);
}

void Injection::Mix(const Pass& pass, int thread) const noexcept {
  MultiplyShare(space_, head_.mix, features_, pass.n_rows(), residual_, thread);
}

// Writes what the attention of every layer reads.
void Injection::Norm(const Pass& pass, int thread) const noexcept {
  const auto rows = space_.RowsOf(pass, thread);
  for (int row = rows.begin; row < rows.end; ++row)
    space_.kernels.rms_norm(residual_.Row(row), head_.feature_norm, residual_.width, norm_eps_,
                            normed_.Row(row));
  if (quantise_) Quantise(space_.kernels, normed_, rows);
}

}  // namespace foretoken::model
