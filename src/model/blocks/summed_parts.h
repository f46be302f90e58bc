// SPDX-License-Identifier: Apache-2.0
// model/blocks/summed_parts.h: several feed-forward parts that read the same residual stream.
//
//   sum = 0;  each part adds its result to sum;  x = x + residual_scale * norm(sum)
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "model/blocks/attention.h"
#include "model/blocks/phase.h"
#include "model/blocks/product.h"

namespace foretoken::model {

class SummedParts final : public Block {
 public:
  // sum: [rows, dim], what the parts add to. norm: [dim]. All references must outlive the block.
  SummedParts(const Workspace& space, const LayerPlace& place, const float* norm,
              const Activation& sum, std::vector<std::unique_ptr<Block>> parts)
      : space_(space),
        addition_{.norm = norm, .norm_eps = place.norm_eps, .scale = place.residual_scale},
        sum_(sum),
        residual_(space.scratch.residual.View(place.dim)),
        parts_(std::move(parts)) {}

  void AddPhases(std::vector<Phase>& phases) const override {
    phases.push_back(PhaseOf<&SummedParts::Clear>(*this, Split::kRows));
    for (const auto& part : parts_) part->AddPhases(phases);
    phases.push_back(PhaseOf<&SummedParts::Add>(*this, Split::kRows));
  }

 private:
  void Clear(const Pass& pass, int thread) const noexcept {
    const auto rows = space_.RowsOf(pass, thread);
    for (int row = rows.begin; row < rows.end; ++row) std::fill_n(sum_.Row(row), sum_.width, 0.0f);
  }
  void Add(const Pass& pass, int thread) const noexcept {
    AddNormed(space_, addition_, sum_, residual_, space_.RowsOf(pass, thread));
  }

  const Workspace space_;
  const Addition addition_;
  const Activation sum_, residual_;
  const std::vector<std::unique_ptr<Block>> parts_;
};

}  // namespace foretoken::model
