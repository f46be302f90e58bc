// SPDX-License-Identifier: Apache-2.0
// model/blocks/per_layer_input.h: what layers get of a token beside the residual stream: P values for
// each layer, from an embedding of their own and from the token's embedding x.
//
// Behind the embedding, for all layers at once:
//   p = (1 / sqrt(dim)) * (Wmodel x);  each layer's P values of p are normed
//   p = (1 / sqrt(2)) * (p + sqrt(P) * layer_embedding(token))
// At the end of each layer, with its P values of p:
//   h = gelu(Wgate x) * p;  x = x + residual_scale * post_norm(Wproj h)
//
// Ranks divide Wmodel. The two matrices of a layer are whole on each rank: they are small, and
// dividing them would need two gathers a layer.
#pragma once

#include "model/blocks/attention.h"
#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/blocks/product.h"
#include "model/config.h"
#include "model/weights/weights.h"

namespace foretoken::model {

// The part behind the embedding.
class PerLayerInputs final : public Block {
 public:
  // REQUIRES: config.layer_input != 0. All references must outlive the block.
  PerLayerInputs(const Workspace& space, const ModelConfig& config, const Weights& weights);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Copy(const Pass& pass, int thread) const noexcept;
  void Project(const Pass& pass, int thread) const noexcept;
  void Mix(const Pass& pass, int thread) const noexcept;

  const Workspace space_;
  const Weights& weights_;
  const PerLayerInputsWeights& own_;
  const int n_layers_, width_;
  const float norm_eps_, projection_scale_, embedding_scale_;
  const Activation residual_, normed_, inputs_, embeddings_;
  const Gather gather_inputs_;
};

// The part at the end of a layer.
class PerLayerInput final : public Block {
 public:
  // REQUIRES: config.layer_input != 0. All references must outlive the block.
  PerLayerInput(const Workspace& space, const ModelConfig& config,
                const PerLayerInputWeights& weights, const LayerPlace& place);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Copy(const Pass& pass, int thread) const noexcept;
  void Gate(const Pass& pass, int thread) const noexcept;
  void Project(const Pass& pass, int thread) const noexcept;
  void AddNormed(const Pass& pass, int thread) const noexcept;

  const Workspace space_;
  const PerLayerInputWeights& weights_;
  const Addition addition_;
  const int first_;  // column of the layer's values among the inputs
  const Activation residual_, normed_, inputs_, gate_;
};

}  // namespace foretoken::model
