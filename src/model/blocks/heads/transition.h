// SPDX-License-Identifier: Apache-2.0
// model/blocks/heads/transition.h: what a token adds to the logits of the row behind it, in a block
// drafter (DSpark: a Markov chain of low rank over tokens).
//
//   logits = W2 W1[token];  certainty = sigmoid(c [own feature, W1[token]] + bias)
//
// The own feature is that of the row behind it: its normed state. The pass reads tokens and own
// features, and no cache.
#pragma once

#include "model/blocks/output.h"
#include "model/blocks/phase.h"
#include "model/config.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class Transition final : public Block {
 public:
  Transition(const Workspace& space, const ModelConfig& config, const Weights& weights);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Embed(const Pass& pass, int thread) const noexcept;
  float Certainty(const float* feature, const float* of_token) const noexcept;

  const Workspace space_;
  const Weights& weights_;
  const HeadWeights& head_;
  const int dim_;
  const Activation of_token_;  // in the memory of the residual stream
  const Output output_;
};

}  // namespace foretoken::model
