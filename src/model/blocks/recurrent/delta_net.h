// SPDX-License-Identifier: Apache-2.0
// model/blocks/recurrent/delta_net.h: the gated delta net (Yang et al. 2024).
//
//   h = norm(x);  c, z, alpha, beta = W h;  q, k, v = silu(convolution of c)
//   each value head, with a key head, and with S its state [head_dim, head_dim]:
//     q, k divided by their length, q also by sqrt(head_dim)
//     S = e^(a softplus(alpha + dt)) S;  d = (v - S'k) sigmoid(beta);  S = S + k d';  o = S'q
//     y = norm(o) * silu(z)
//   x = x + residual_scale * Wout y
//
// A head computes many positions of a sequence one after another, so its state stays in a cache of the
// CPU. Value heads that share a key head follow each other, so q and k are computed once for them.
// Ranks have value heads with their states, and each has all inputs of the convolution.
#pragma once

#include <span>
#include <vector>

#include "model/blocks/attention.h"
#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/blocks/product.h"
#include "model/blocks/recurrent/convolution.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class DeltaNet final : public Block {
 public:
  // All references must outlive the block.
  DeltaNet(const Workspace& space, const DeltaNetConfig& config, const DeltaNetWeights& weights,
           const LayerPlace& place);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Norm(const Pass& pass, int thread) const noexcept;
  void Project(const Pass& pass, int thread) const noexcept;
  void Advance(const Pass& pass, int thread) const noexcept;
  void Output(const Pass& pass, int thread) const noexcept;
  // What heads need of some positions; `copy`: room for a state.
  struct Prepared {
    float *copy, *q, *k, *v;  // [positions, head_dim]
    float *decay, *beta;      // [positions]
    Convolution::Inputs inputs;
  };
  void AdvanceHeads(const kv::Segment& segment, const Positions& positions,
                    std::span<const int> heads, int thread) const noexcept;
  void PrepareKeyHead(int key_head, const Prepared& prepared) const noexcept;
  void PrepareHead(int head, const Prepared& prepared) const noexcept;
  void AdvanceHead(const kv::Segment& segment, const Positions& positions, int head,
                   const Prepared& prepared) const noexcept;
  std::vector<int> HeadsByKeyHead() const;
  int KeyHeadOf(int head) const noexcept {
    return config_.grouped ? head / (config_.n_value_heads / config_.n_key_heads)
                           : head % config_.n_key_heads;
  }

  const Workspace space_;
  const DeltaNetConfig& config_;
  const DeltaNetWeights& weights_;
  const LayerPlace place_;
  const OutputRange own_;         // value heads of this rank
  const std::vector<int> heads_;  // the same, those with the same key head together
  const Addition addition_;
  const Activation residual_, normed_;
  const Activation c_;             // inputs of the convolution, then alpha and beta
  const Activation alpha_, beta_;  // these columns of it
  const Activation z_, y_;
  const Convolution convolution_;
  const Gather gather_inputs_, gather_y_, gather_output_;
};

}  // namespace foretoken::model
