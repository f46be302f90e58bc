// SPDX-License-Identifier: Apache-2.0
// model/blocks/heads/next_feature.h: the features of an assistant, post_projection times its normed
// last state, for the rows that ask for logits. Each rank computes them whole.
#pragma once

#include "model/blocks/phase.h"
#include "model/blocks/product.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class NextFeature final : public Block {
 public:
  // last: the normed states, which the output block writes. weights: HeadWeights::next.
  NextFeature(const Workspace& space, int target_dim, const Linear& weights, const Activation& last)
      : space_(space), weights_(weights), last_(last), next_(space.scratch.next.View(target_dim)) {}

  void AddPhases(std::vector<Phase>& phases) const override {
    phases.push_back(PhaseOf<&NextFeature::Multiply>(
        *this, Split::kOther, [](const Pass& pass) { return !pass.logit_rows.empty(); }));
  }

  // The feature of the i-th row of logits in the last pass.
  const float* Row(int i) const noexcept { return next_.Row(i); }

 private:
  void Multiply(const Pass& pass, int thread) const noexcept {
    MultiplyShare(space_, weights_, last_, static_cast<int>(pass.logit_rows.size()), next_, thread);
  }

  const Workspace space_;
  const Linear& weights_;
  const Activation last_, next_;
};

}  // namespace foretoken::model
