// SPDX-License-Identifier: Apache-2.0
// model/blocks/recurrent/mamba2.h: Mamba-2 (Dao and Gu 2024).
//
//   h = norm(x);  z, c, dt = W h;  u, B, C = silu(convolution of c, with a bias)
//   each head, with the B and C of its group, and with S its state [state_size, head_dim]:
//     t = softplus(dt + bias);  S = e^(a t) S + B (t u)';  o = S'C + D u
//   y = norm of each group of (o * silu(z));  x = x + residual_scale * Wout y
//
// A head computes all rows of a sequence one after another, so its state stays in a cache of the CPU.
// Ranks have heads with their states, and each has all inputs of the convolution.
#pragma once

#include "model/blocks/attention.h"
#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/blocks/product.h"
#include "model/blocks/recurrent/convolution.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class Mamba2 final : public Block {
 public:
  // All references must outlive the block.
  Mamba2(const Workspace& space, const Mamba2Config& config, const Mamba2Weights& weights,
         const LayerPlace& place);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  void Norm(const Pass& pass, int thread) const noexcept;
  void Project(const Pass& pass, int thread) const noexcept;
  void Advance(const Pass& pass, int thread) const noexcept;
  void NormGroups(const Pass& pass, int thread) const noexcept;
  void Output(const Pass& pass, int thread) const noexcept;
  void AdvanceHead(const kv::Segment& segment, int head, int thread) const noexcept;
  // What a head's state needs of one position.
  struct Input {
    float *u, *scaled;  // [head_dim]
    float *b, *c;       // [state_size]
    float decay;
  };
  void Prepare(const kv::Segment& segment, Pos position, int head, Input& input) const noexcept;
  void Convolve(const kv::Segment& segment, Pos position, int column, int n,
                float* y) const noexcept;

  const Workspace space_;
  const Mamba2Config& config_;
  const Mamba2Weights& weights_;
  const LayerPlace place_;
  const OutputRange own_;  // heads of this rank
  const Addition addition_;
  const Activation residual_, normed_;
  const Activation c_, dt_;  // inputs of the convolution; dt behind them
  const Activation z_, y_;
  const Convolution convolution_;
  const Gather gather_inputs_, gather_y_, gather_output_;
};

}  // namespace foretoken::model
