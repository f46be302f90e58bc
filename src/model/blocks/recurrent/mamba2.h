// SPDX-License-Identifier: Apache-2.0
// model/blocks/recurrent/mamba2.h: Mamba-2 (Dao and Gu 2024).
//
//   h = norm(x);  z, c, dt = W h;  u, B, C = silu(convolution of c, with a bias)
//   each head, with the B and C of its group, and with S its state [state_size, head_dim]:
//     t = softplus(dt + bias);  S = e^(a t) S + B (t u)';  o = S'C + D u
//   y = norm of each group of (o * silu(z));  x = x + residual_scale * Wout y
//
// A head computes many positions of a sequence one after another, so its state stays in a cache of the
// CPU. B and C are computed once for the heads of a group that a thread has.
// Ranks have heads with their states, and each has all inputs of the convolution.
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
  // What heads need of some positions; `copy`: room for a state.
  struct Prepared {
    float *copy, *u, *scaled;  // [positions, head_dim]
    float *b, *c;              // [positions, state_size]
    float* decay;              // [positions]
    Convolution::Inputs inputs;
  };
  void AdvanceHeads(const kv::Segment& segment, const Positions& positions,
                    std::span<const int> heads, int thread) const noexcept;
  void PrepareHead(int head, const Prepared& prepared) const noexcept;
  void AdvanceHead(const kv::Segment& segment, const Positions& positions, int head,
                   const Prepared& prepared) const noexcept;

  const Workspace space_;
  const Mamba2Config& config_;
  const Mamba2Weights& weights_;
  const LayerPlace place_;
  const OutputRange own_;         // heads of this rank
  const std::vector<int> heads_;  // the same
  const Addition addition_;
  const Activation residual_, normed_;
  const Activation c_, dt_;  // inputs of the convolution; dt behind them
  const Activation z_, y_;
  const Convolution convolution_;
  const Gather gather_inputs_, gather_y_, gather_output_;
};

}  // namespace foretoken::model
