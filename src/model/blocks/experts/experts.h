// SPDX-License-Identifier: Apache-2.0
// model/blocks/experts/experts.h: a mixture of experts as feed-forward part.
//
//   h = norm(x);  the router's product with h (+ bias) chooses experts and weights
//   (expert_choice.h); a router may have a norm of its own in place of h, and each weight may be
//   multiplied by a number of its expert
//   e(h) = Wdown (function(Wgate h) * Wup h), for each chosen expert and for the shared part; where
//   there are biases, each product of an expert is rounded, and then its bias is added
//   y = 0;  for the chosen experts in ascending order: y = y + weight * e(h)
//   y = y + shared(h), times the sigmoid of its own product where it has one
//   to = to + residual_scale * post_norm(y), where `to` is x, or a sum of several parts
//   (summed_parts.h)
//
// The rows of a pass are ordered by expert, so that the weights of an expert are read once for all
// rows that chose it. A row adds its experts in the order of their numbers, whatever other rows
// chose, so its result does not depend on its batch.
#pragma once

#include "model/blocks/attention.h"
#include "model/blocks/gather.h"
#include "model/blocks/phase.h"
#include "model/blocks/product.h"
#include "model/weights/weights.h"

namespace foretoken::model {

class Experts final : public Block {
 public:
  // to: [rows, dim]. All references must outlive the block.
  Experts(const Workspace& space, const ExpertsConfig& config, const ExpertsWeights& weights,
          const LayerPlace& place, const Activation& to);

  void AddPhases(std::vector<Phase>& phases) const override;

 private:
  // The rows that one part of the mixture serves: positions [begin, end) of what is ordered by
  // expert.
  struct Rows {
    int begin, end;
    int n() const { return end - begin; }
  };
  void Norm(const Pass& pass, int thread) const noexcept;
  void Route(const Pass& pass, int thread) const noexcept;
  void Choose(const Pass& pass, int thread) const noexcept;
  void Order(const Pass& pass, int thread) const noexcept;
  void Page(const Pass& pass, int thread) const noexcept;  // where the experts are paged
  void GateUp(const Pass& pass, int thread) const noexcept;
  void Down(const Pass& pass, int thread) const noexcept;
  void AddNormed(const Pass& pass, int thread) const noexcept;

  Rows RowsOf(int expert) const noexcept;
  // A part of the mixture, and what it writes.
  struct Part {
    Linear gate, up;
    const float *gate_bias, *up_bias;  // or null
    bool quantises;                    // the result is needed in int8
    Activation y, up_y;
  };
  void Activate(const Part& part, const std::int32_t* x_rows, int n_rows,
                ThreadPool::Share units) const noexcept;
  void AddExperts(ThreadPool::Share tiles) const noexcept;
  void AddShared(int n_rows, ThreadPool::Share tiles) const noexcept;
  Part PartOf(int expert) const noexcept;

  const Workspace space_;
  const ExpertsConfig& config_;
  const ExpertsWeights& weights_;
  const LayerPlace place_;
  const bool quantise_input_;
  const GateKernel gate_function_;
  const Addition addition_;
  const Activation residual_, to_, normed_;
  const Activation router_input_;  // `normed_` where the router has no norm of its own
  const Activation logits_, scores_, shared_gate_, gate_, up_, shared_, shared_up_, delta_, sum_;
  const Gather gather_gate_, gather_shared_, gather_output_;
};

}  // namespace foretoken::model
