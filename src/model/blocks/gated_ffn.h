// SPDX-License-Identifier: Apache-2.0
// model/blocks/gated_ffn.h: the gated feed-forward part.
//
//   h = norm(x);  to = to + residual_scale * post_norm(Wdown (function(Wgate h) * Wup h))
//
// A layer may lack either norm. `to` is x, or a sum of several parts (summed_parts.h).
#pragma once

#include "model/blocks/attention.h"
#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/blocks/product.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class GatedFfn final : public Block {
 public:
  // to: [rows, dim]. All references must outlive the block.
  GatedFfn(const Workspace& space, const GatedFfnConfig& config, const GatedFfnWeights& weights,
           const LayerPlace& place, const Activation& to);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Norm(const Pass& pass, int thread) const noexcept;
  void GateUp(const Pass& pass, int thread) const noexcept;
  void Down(const Pass& pass, int thread) const noexcept;
  void AddNormed(const Pass& pass, int thread) const noexcept;

  const Workspace space_;
  const GatedFfnWeights& weights_;
  const LayerPlace place_;
  const Addition addition_;
  const GateKernel gate_function_;
  const Activation residual_, to_, normed_, gate_, up_;
  const Gather gather_gate_, gather_output_;
};

}  // namespace foretoken::model
