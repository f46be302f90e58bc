// SPDX-License-Identifier: Apache-2.0
// model/blocks/heads/head_entry.h: how a pass of a head begins. All entries join the token's
// embedding with a feature. Those of EAGLE-3 and MTP heads norm both:
//
//   pair = [norm(embedding(token)), norm(feature)]
#pragma once

#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/config.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class HeadEntry : public Block {
 protected:
  // mixes: the passes in which the entry's matrix writes the residual stream; null: all.
  HeadEntry(const Workspace& space, const ModelConfig& config, const Weights& weights,
            bool (*mixes)(const Pass& pass) = nullptr);

  void WritePair(Token token, const float* feature, int row) const noexcept;

  const Workspace space_;
  const ModelConfig& config_;
  const Weights& weights_;
  const HeadWeights& head_;
  const Activation residual_, pair_;
  const Gather gather_mixed_;  // what the matrix of the entry writes

 private:
  const Activation normed_;
};

// EAGLE-3: x = feature, or the normed feature; the attention of the layer reads the pair. The
// feature is fc applied to the target's features, or the head's own feature of an earlier row.
class EagleEntry final : public HeadEntry {
 public:
  EagleEntry(const Workspace& space, const ModelConfig& config, const Weights& weights);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void TakeTarget(const Pass& pass, int thread) const noexcept;
  void Mix(const Pass& pass, int thread) const noexcept;
  void TakeOwn(const Pass& pass, int thread) const noexcept;
  void Pair(const Pass& pass, int thread) const noexcept;

  const bool quantise_pair_;
  const Activation mixed_;
};

// MTP: x = eh_proj pair.
class MtpEntry final : public HeadEntry {
 public:
  MtpEntry(const Workspace& space, const ModelConfig& config, const Weights& weights)
      : HeadEntry(space, config, weights) {}

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Pair(const Pass& pass, int thread) const noexcept;
  void Mix(const Pass& pass, int thread) const noexcept;
};

// Assistants: x = pre_projection [scale * embedding(token), feature], with the target's embedding.
class AssistantEntry final : public Block {
 public:
  AssistantEntry(const Workspace& space, const ModelConfig& config, const Weights& weights);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Pair(const Pass& pass, int thread) const noexcept;
  void Mix(const Pass& pass, int thread) const noexcept;

  const Workspace space_;
  const Weights& weights_;
  const int width_;  // of the embedding, and of the feature
  const float scale_;
  const Activation residual_, pair_;
  const Gather gather_mixed_;
};

}  // namespace foretoken::model
