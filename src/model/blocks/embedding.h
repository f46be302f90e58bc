// SPDX-License-Identifier: Apache-2.0
// model/blocks/embedding.h: the entry of a whole network: x = embedding_scale * embedding(token).
#pragma once

#include "model/blocks/phase.h"
#include "model/config.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class Embedding final : public Block {
 public:
  Embedding(const Workspace& space, const ModelConfig& config, const Weights& weights)
      : space_(space),
        weights_(weights),
        scale_(config.embedding_scale),
        residual_(space.scratch.residual.View(config.dim)) {}

  void AddPhases(std::vector<Phase>& phases) const override {
    phases.push_back(PhaseOf<&Embedding::Embed>(*this, Split::kRows));
  }

 private:
  void Embed(const Pass& pass, int thread) const noexcept {
    const auto rows = space_.RowsOf(pass, thread);
    for (int row = rows.begin; row < rows.end; ++row) {
      weights_.Embed(pass.tokens[static_cast<std::size_t>(row)], residual_.Row(row));
      if (scale_ != 1) space_.kernels.scale(residual_.Row(row), residual_.width, scale_);
    }
  }

  const Workspace space_;
  const Weights& weights_;
  const float scale_;
  const Activation residual_;
};

}  // namespace foretoken::model
