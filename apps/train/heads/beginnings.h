// SPDX-License-Identifier: Apache-2.0
// train/heads/beginnings.h: the target's tensors that the weights of a head can begin with, so that
// it has less to learn.
#pragma once

#include <optional>
#include <string>

#include "train/targets/target_reader.h"

namespace foretoken::train {

class Beginnings {
 public:
  // The target must outlive it. latent: its last block has latent attention, and so has the new one;
  // otherwise blocks of that kind are left out.
  explicit Beginnings(const TargetReader& target, bool latent = false);

  // The tensor of that name in the target's last block with attention; nothing if its shape is another.
  std::optional<torch::Tensor> OfBlock(const std::string& part, const torch::Tensor& like) const;
  // A norm of that block; ones where there is none.
  torch::Tensor Norm(const std::string& part) const;
  // Before the target's output head.
  torch::Tensor OutputNorm() const;
  // Whether queries and keys mean the same in a block with interleaved rotation and no norms.
  bool SameQueries() const;

 private:
  const TargetReader& target_;
  const model::LayerConfig* layer_ = nullptr;
  std::string prefix_;
};

}  // namespace foretoken::train
