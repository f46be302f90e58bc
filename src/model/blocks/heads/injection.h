// SPDX-License-Identifier: Apache-2.0
// model/blocks/heads/injection.h: how the features of committed positions enter a block drafter.
//
//   g = norm(fc(features));  in each layer k, v = W g  are stored as those of the position
//
// A pass with features runs this block and then the injection phases of the layers. It has no
// queries and no output. A pass without features runs the layers as usual: its rows see what was
// injected.
#pragma once

#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/config.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class Injection final : public Block {
 public:
  Injection(const Workspace& space, const ModelConfig& config, const Weights& weights);

  void AddPhases(std::vector<Phase>&) const override {}
  void AddInjectionPhases(std::vector<Phase>& phases) const override;

 private:
  void TakeFeatures(const Pass& pass, int thread) const noexcept;
  void Mix(const Pass& pass, int thread) const noexcept;
  void Norm(const Pass& pass, int thread) const noexcept;

  const Workspace space_;
  const HeadWeights& head_;
  const float norm_eps_;
  const bool quantise_;  // a layer reads the int8 form
  const Activation features_, residual_, normed_;
  const Gather gather_mixed_;
};

}  // namespace foretoken::model
