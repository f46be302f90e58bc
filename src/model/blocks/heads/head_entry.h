// SPDX-License-Identifier: Apache-2.0
// model/blocks/heads/head_entry.h: what passes of EAGLE-3 and MTP heads begin with: the token's embedding
// and a feature, both normed.
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

}  // namespace foretoken::model
