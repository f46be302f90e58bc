// SPDX-License-Identifier: Apache-2.0
// model/blocks/recurrent/short_conv.h: a gated convolution over the newest positions (LFM2).
//
//   h = norm(x);  b, c, u = W h;  y = c * sum over j of taps[j] * (b * u of position p - n + 1 + j)
//   x = x + residual_scale * Wout y
//
// What a position leaves to the next ones is b * u. A sum begins with 0 and goes from the oldest
// position to the newest; each product and each sum rounds.
#pragma once

#include "model/blocks/attention.h"
#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/blocks/product.h"
#include "model/blocks/recurrent/convolution.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class ShortConv final : public Block {
 public:
  // All references must outlive the block.
  ShortConv(const Workspace& space, const ShortConvConfig& config, const ShortConvWeights& weights,
            const LayerPlace& place);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  struct Columns {
    int begin, end;
  };
  void Norm(const Pass& pass, int thread) const noexcept;
  void Convolve(const Pass& pass, int thread) const noexcept;
  void ConvolveSegment(const kv::Segment& segment, Columns columns) const noexcept;
  void Output(const Pass& pass, int thread) const noexcept;

  const Workspace space_;
  const ShortConvWeights& weights_;
  const LayerPlace place_;
  const Addition addition_;
  const Activation residual_, normed_, b_, c_, u_, y_;
  const Convolution convolution_;
  const Gather gather_y_, gather_output_;
};

}  // namespace foretoken::model
