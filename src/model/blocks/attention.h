// SPDX-License-Identifier: Apache-2.0
// model/blocks/attention.h: grouped-query attention.
//
//   h = norm(x);  q, k, v = W h (+ biases);  q, k normed by head or by row;  rotate q and k;
//   store k and v;  a = attention(q, cache) * sigmoid(Wg h)
//   x = x + residual_scale * post_norm(Wo a + bias)
//
// An injection only stores k and v, of what another block has prepared in place of h.
//
// A layer may lack any of the norms, the biases, the rotation and the gate. Where it reads the cache of an
// earlier layer, it computes and stores no k and v.
#pragma once

#include "model/blocks/cache_rotation.h"
#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/blocks/product.h"
#include "model/config.h"
#include "model/ranks/heads.h"
#include "model/rope_table.h"
#include "model/weights/weights.h"

namespace foretoken::model {

// Where a block stands in its network.
struct LayerPlace {
  int layer = 0;
  int dim = 0;
  float norm_eps = 0;
  float residual_scale = 1;
  // Its parts read what stands in `normed`, and what they give goes to `delta`
  // (blocks/heads/local_convolution.h).
  bool convolved = false;
};

class Attention final : public Block {
 public:
  // rope: null where the layer does not rotate. input: what q, k and v are computed from, where the
  // layer has no norm that would compute it. All references must outlive the block.
  Attention(const Workspace& space, const AttentionConfig& config, const AttentionWeights& weights,
            const LayerPlace& place, const RopeTable* rope, const Activation& input);

  void AddPhases(std::vector<Phase>& phases) const override;
  void AddInjectionPhases(std::vector<Phase>& phases) const override;

 private:
  void Norm(const Pass& pass, int thread) const noexcept;
  void Project(const Pass& pass, int thread) const noexcept;
  void ProjectKeys(const Pass& pass, int thread) const noexcept;
  void StoreKeys(const Pass& pass, int thread) const noexcept;
  void NormRows(const Pass& pass, int thread) const noexcept;
  void Attend(const Pass& pass, int thread) const noexcept;
  void QuantiseAttended(const Pass& pass, int thread) const noexcept;
  void Output(const Pass& pass, int thread) const noexcept;
  void AddNormed(const Pass& pass, int thread) const noexcept;
  void AttendHead(const Pass& pass, const kv::Segment& segment, int head,
                  int thread) const noexcept;
  void RunKernel(kernels::AttentionArgs args, const Pass& pass, int head,
                 int thread) const noexcept;
  std::span<const std::int32_t> BlocksOf(const kv::Segment& segment) const noexcept {
    return own_blocks_ ? segment.window_blocks : segment.blocks;
  }
  // The queries of this rank that read a key-value head.
  OutputRange QueriesOf(int head) const noexcept;
  void PrepareQueries(const kv::Segment& segment, OutputRange queries) const noexcept;
  void StoreHead(const kv::Segment& segment, int head,
                 const CacheMemory::HeadView& view) const noexcept;
  // Where each head has a norm of its own.
  const float* HeadNorm(const float* norm) const noexcept { return norms_rows_ ? nullptr : norm; }
  // The part of a bias that is not yet added.
  const float* HeadBias(const float* bias, int at) const noexcept {
    return bias == nullptr || norms_rows_ ? nullptr : bias + at;
  }
  void Prepare(float* x, int n_heads, const float* bias, const float* norm,
               Pos position) const noexcept;
  float Temperature(Pos position) const noexcept;
  void GateAttended(const kv::Segment& segment, OutputRange queries) const noexcept;

  const Workspace space_;
  const AttentionConfig& config_;
  const AttentionWeights& weights_;
  const LayerPlace place_;
  const RopeTable* const rope_;
  const HeadRange own_;  // of this rank
  const int group_;      // queries that share a key-value head
  const bool quantise_input_;
  const bool own_blocks_;  // a memory for layers that see a window
  const bool stores_;      // its keys and values
  const int cache_layer_;  // the layer whose keys and values it reads
  const Addition addition_;
  const bool
      norms_rows_;  // one norm for all heads of a row; a phase of its own adds the biases too
  // Whole blocks of 32 columns belong to one head group, so a thread can quantise its own results.
  const bool groups_fill_blocks_;
  const float scale_;
  const CacheRotation key_rotation_, value_rotation_;
  const Activation residual_, input_, q_, k_, v_, gate_, attended_;
  const Gather gather_queries_, gather_keys_, gather_attended_, gather_output_;
};

}  // namespace foretoken::model
