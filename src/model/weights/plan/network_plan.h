// SPDX-License-Identifier: Apache-2.0
// model/weights/plan/network_plan.h: what a network needs of its file, layer by layer.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "foretoken/result.h"
#include "formats/checkpoint.h"
#include "model/config.h"
#include "model/ranks/division.h"
#include "model/weights/plan/tensor_plan.h"
#include "model/weights/weights.h"

namespace foretoken::model {

// Values of a token for every layer.
inline constexpr const char* kLayerEmbedding = "per_layer_token_embd.weight";
// Values of a token for the transition of a block drafter, and for its selector.
inline constexpr const char *kTransitions = "markov_w1.weight",
                            *kBefore = "selector_predecessor.weight",
                            *kBehind = "selector_successor.weight";

// The number of rows of an embedding. REQUIRES: the tensor is there. Error: kInvalidFile.
[[nodiscard]] Result<int> EmbeddingRows(const formats::Checkpoint& checkpoint,
                                        const std::string& name);

class NetworkPlan : public TensorPlan {
 public:
  // Plans into `weights`, which must outlive the plan and stay where it is.
  NetworkPlan(const formats::Checkpoint& checkpoint, const ModelConfig& config,
              const Division& division, Weights& weights, const std::optional<CopyTypes>& copy = {})
      : TensorPlan(checkpoint, division, weights.vectors_, copy,
                   config.layers.empty() ? 0 : config.layers.back().block),
        config_(config),
        weights_(weights) {}

  // A whole model. reduced_tokens: the rows of a copy's reduced output, ascending; empty: it has none, and
  // so it is where the copy's output is the network's own. Errors: as Weights::Load.
  [[nodiscard]] Status Plan(std::span<const std::int32_t> output_tokens,
                            std::span<const std::int32_t> reduced_tokens = {});

  // In this file; null: the target's is used, or there is none.
  const formats::TensorView* embedding() const { return embedding_; }
  const formats::TensorView* second_embedding() const { return second_embedding_; }
  const formats::TensorView* third_embedding() const { return third_embedding_; }

 protected:
  Status Embedding(const std::string& name, int vocabulary);
  Status Layers();
  Status RopeFactors();

  const ModelConfig& config_;
  Weights& weights_;
  const formats::TensorView *embedding_ = nullptr, *second_embedding_ = nullptr,
                            *third_embedding_ = nullptr;

 private:
  // The table and the product that give every layer its input.
  Status LayerInputs();
  Status LayerInput(const std::string& prefix, PerLayerInputWeights& w);
  Status Layer(const LayerConfig& config, LayerWeights& layer);
  Status LocalConvolution(const std::string& name, const LocalConvolutionConfig& config,
                          LocalConvolutionWeights& w);
  Status Mixer(const std::string& prefix, const AttentionConfig& config, LayerWeights& layer);
  Status Mixer(const std::string& prefix, const LatentAttentionConfig& config, LayerWeights& layer);
  Status Mixer(const std::string& prefix, const ShortConvConfig& config, LayerWeights& layer);
  Status Mixer(const std::string& prefix, const DeltaNetConfig& config, LayerWeights& layer);
  Status Mixer(const std::string& prefix, const Mamba2Config& config, LayerWeights& layer);
  static Status Mixer(const std::string&, const NoPart&, LayerWeights&) { return {}; }
  // One matrix, or the product of two. Each rank has the rows of its heads.
  Status LatentQueries(const std::string& prefix, const LatentAttentionConfig& config,
                       LatentAttentionWeights& w);
  // The tensor holds for each head the columns of its matrix k, then the rows of its matrix v.
  Status LatentMatricesTogether(const std::string& name, const LatentAttentionConfig& config,
                                LatentAttentionWeights& w);
  // Three matrices, or one that holds the rows of all three in this order. Where the layer reads the
  // cache of another, only the first is needed; w.k and w.v have no tiles then.
  Status QueriesKeysValues(const std::string& prefix, const AttentionConfig& config, int q_dim,
                           int kv_dim, AttentionWeights& w);
  Status Queries(const std::string& name, const AttentionConfig& config, OutputRange own, int width,
                 AttentionWeights& w);
  Status Mamba2(const std::string& prefix, const Mamba2Config& config, Mamba2Weights& w);
  // Two matrices, or one that holds for each key head the rows of beta, then those of alpha.
  Status AlphaBeta(const std::string& prefix, const DeltaNetConfig& config, DeltaNetWeights& w);
  // The taps of each channel lie together in the file, and the channels of each tap in memory.
  Status Taps(const std::string& name, int taps, int channels, const float*& out);
  static Status FeedForward(const std::string&, const NoPart&, LayerWeights&) { return {}; }
  Status FeedForward(const std::string& prefix, const GatedFfnConfig& config, LayerWeights& layer);
  Status FeedForward(const std::string& prefix, const ExpertsConfig& config, LayerWeights& layer);
  Status GatedFfn(const std::string& prefix, const GatedFfnConfig& config, GatedFfnWeights& w);
  Status RouterNorm(const std::string& prefix, const float*& out);
  Status RopeFactorsNamed(std::string_view name, int n);
};

}  // namespace foretoken::model
