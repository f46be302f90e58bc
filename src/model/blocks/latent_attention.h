// SPDX-License-Identifier: Apache-2.0
// model/blocks/latent_attention.h: multi-head latent attention.
//
//   h = norm(x);  q = Wq h, or Wqb norm(Wqa h);  latent, r = Wkv h;  latent = norm(latent)
//   rotate r and the last part of each query; store the key (latent, r)
//   by head i:  query = (Wk_i q_i, rotated part);  a = attention(query, cache);  y_i = Wv_i a
//   x = x + residual_scale * Wo y
//
// All heads read the same keys, and the value of a position is the latent in its key. So heads do
// not have keys and values of their own at any time, and the cache keeps key_dim numbers a position.
//
// Ranks divide the heads, with all matrices that belong to heads, and Wo. Wqa, Wkv and the cache are
// whole on each rank: they are small, and dividing them would need one more gather.
#pragma once

#include "model/blocks/attention.h"
#include "model/blocks/cache_rotation.h"
#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/blocks/product.h"
#include "model/config.h"
#include "model/ranks/heads.h"
#include "model/rope_table.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class LatentAttention final : public Block {
 public:
  // All references must outlive the block.
  LatentAttention(const Workspace& space, const LatentAttentionConfig& config,
                  const LatentAttentionWeights& weights, const LayerPlace& place,
                  const RopeTable& rope);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Norm(const Pass& pass, int thread) const noexcept;
  void Project(const Pass& pass, int thread) const noexcept;
  void StoreKeys(const Pass& pass, int thread) const noexcept;
  void ProjectQueries(const Pass& pass, int thread) const noexcept;
  void PrepareQueries(const Pass& pass, int thread) const noexcept;
  void EnterLatents(const Pass& pass, int thread) const noexcept;
  void Attend(const Pass& pass, int thread) const noexcept;
  void LeaveLatents(const Pass& pass, int thread) const noexcept;
  void QuantiseResults(const Pass& pass, int thread) const noexcept;
  void Output(const Pass& pass, int thread) const noexcept;

  void StoreKey(const kv::Segment& segment, int row) const noexcept;
  void Rotate(float* x, int n_heads, int stride, Pos position) const noexcept;
  void AttendHeads(const Pass& pass, const kv::Segment& segment, int begin, int end,
                   int thread) const noexcept;
  Activation QueryOf(int head, int n_rows) const noexcept;
  Activation AttendedOf(int head, int n_rows) const noexcept;

  const Workspace space_;
  const LatentAttentionConfig& config_;
  const LatentAttentionWeights& weights_;
  const LayerPlace place_;
  const RopeTable& rope_;
  const OutputRange own_;     // heads of this rank
  const Linear& from_input_;  // the queries' matrix that reads the layer's input
  const bool quantise_input_;
  const Addition addition_;
  const CacheRotation rotation_;
  const Activation residual_, input_, q_a_, q_, key_, queries_, attended_, results_;
  const Gather gather_results_, gather_output_;
};

}  // namespace foretoken::model
