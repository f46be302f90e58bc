// SPDX-License-Identifier: Apache-2.0
// model/blocks/kept_state.h: copies hidden states of all rows to where a pass keeps features.
#pragma once

#include <algorithm>

#include "model/blocks/phase.h"

namespace foretoken::model {

// One part of a feature row: the residual stream where the block stands, as it is or normed.
class KeptState final : public Block {
 public:
  // norm: null: as it is. features: [rows, stride], this part's column first.
  // wanted: null: in every pass.
  KeptState(const Workspace& space, int dim, const float* norm, float norm_eps, float* features,
            std::int64_t stride, bool (*wanted)(const Pass&) = nullptr)
      : space_(space),
        norm_(norm),
        norm_eps_(norm_eps),
        residual_(space.scratch.residual.View(dim)),
        features_(features),
        stride_(stride),
        wanted_(wanted) {}

  void AddPhases(std::vector<Phase>& phases) const override {
    phases.push_back(PhaseOf<&KeptState::Keep>(*this, Split::kRows, wanted_));
  }

 private:
  void Keep(const Pass& pass, int thread) const noexcept {
    const auto rows = space_.RowsOf(pass, thread);
    for (int row = rows.begin; row < rows.end; ++row) {
      float* const to = features_ + row * stride_;
      if (norm_ == nullptr)
        std::copy_n(residual_.Row(row), residual_.width, to);
      else
        space_.kernels.rms_norm(residual_.Row(row), norm_, residual_.width, norm_eps_, to);
    }
  }

  const Workspace space_;
  const float* const norm_;
  const float norm_eps_;
  const Activation residual_;
  float* const features_;
  const std::int64_t stride_;
  bool (*const wanted_)(const Pass&);
};

}  // namespace foretoken::model
