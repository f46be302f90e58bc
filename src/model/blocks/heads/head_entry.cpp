// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/heads/head_entry.h"

namespace foretoken::model {

HeadEntry::HeadEntry(const Workspace& space, const ModelConfig& config, const Weights& weights,
                     bool (*mixes)(const Pass& pass))
    : space_(space),
      config_(config),
      weights_(weights),
      head_(*weights.head),
      residual_(space.scratch.residual.View(config.dim)),
      pair_(space.scratch.pair.View(2 * config.dim)),
      gather_mixed_(space, residual_, GatheredForm::kFloat,
                    ColumnsByRank(space.division, config.dim), {.wanted = mixes}),
      normed_(space.scratch.normed.View(config.dim)) {}

void HeadEntry::WritePair(Token token, const float* feature, int row) const noexcept {
  // The embedding passes through `normed`, which the layer writes later.
  float *const embedding = normed_.Row(row), *const pair = pair_.Row(row);
  weights_.Embed(token, embedding);
  space_.kernels.rms_norm(embedding, head_.token_norm, config_.dim, config_.norm_eps, pair);
  space_.kernels.rms_norm(feature, head_.feature_norm, config_.dim, config_.norm_eps,
                          pair + config_.dim);
}

}  // namespace foretoken::model
