// SPDX-License-Identifier: Apache-2.0
// model/blocks/heads/local_convolution.h: a part of a block drafter's layer, between two convolutions
// over the rows of its block (DFlash 2).
//
//   h = norm(x);  c = W h: a number for each side, tap and group of columns
//   the part reads y[i] = sum over t of (base[0, t] + c[i, 0, t]) * h[i - t]
//   x[i] = x[i] + residual_scale * sum over t of (base[1, t] + c[i, 1, t]) * part[i - t]
//
// A row sees the rows before it in its own segment. A sum begins with the row's own product; each product
// and each sum rounds.
#pragma once

#include <memory>

#include "model/blocks/attention.h"
#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class LocalConvolution final : public Block {
 public:
  // What the part lacks: its norm, and whether it reads the int8 form of its input.
  struct Entry {
    const float* norm;
    bool quantised;
  };
  // part: was made for a place that is convolved. All references must outlive the block.
  LocalConvolution(const Workspace& space, const LocalConvolutionConfig& config,
                   const LocalConvolutionWeights& weights, const LayerPlace& place,
                   const Entry& entry, std::unique_ptr<Block> part);

  void AddPhases(std::vector<Phase>& phases) const override;
  // Injected rows are not convolved.
  void AddInjectionPhases(std::vector<Phase>& phases) const override {
    part_->AddInjectionPhases(phases);
  }

 private:
  enum Side { kBefore, kBehind };
  void Norm(const Pass& pass, int thread) const noexcept;
  void Multiply(const Pass& pass, int thread) const noexcept;
  void ConvolveInput(const Pass& pass, int thread) const noexcept;
  void ConvolveOutput(const Pass& pass, int thread) const noexcept;
  // Writes each of the thread's rows of `normed` from those of x.
  void Convolve(const Activation& x, Side side, const Pass& pass,
                ThreadPool::Share rows) const noexcept;
  // offset: of the row in its segment.
  void ConvolveRow(const Activation& x, Side side, int row, int offset) const noexcept;

  const Workspace space_;
  const LocalConvolutionConfig config_;
  const LocalConvolutionWeights& weights_;
  const LayerPlace place_;
  const Entry entry_;
  const std::unique_ptr<Block> part_;
  const Activation residual_, h_, normed_, delta_, coefficients_;
  const Gather gather_coefficients_;
};

}  // namespace foretoken::model
