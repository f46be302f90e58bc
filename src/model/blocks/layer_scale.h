// SPDX-License-Identifier: Apache-2.0
// model/blocks/layer_scale.h: the end of a layer that scales what leaves it: x = scale * x.
#pragma once

#include "model/blocks/phase.h"

namespace foretoken::model {

class LayerScale final : public Block {
 public:
  LayerScale(const Workspace& space, int dim, float scale)
      : space_(space), scale_(scale), residual_(space.scratch.residual.View(dim)) {}

  void AddPhases(std::vector<Phase>& phases) const override {
    phases.push_back(PhaseOf<&LayerScale::Scale>(*this, Split::kRows));
  }

 private:
  void Scale(const Pass& pass, int thread) const noexcept {
    const auto rows = space_.RowsOf(pass, thread);
    for (int row = rows.begin; row < rows.end; ++row)
      space_.kernels.scale(residual_.Row(row), residual_.width, scale_);
  }

  const Workspace space_;
  const float scale_;
  const Activation residual_;
};

}  // namespace foretoken::model
