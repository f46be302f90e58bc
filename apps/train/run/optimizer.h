// SPDX-License-Identifier: Apache-2.0
// train/run/optimizer.h: Muon for the matrices of blocks, AdamW for tables, gains and biases.
//
// Muon (Jordan et al. 2024): the momentum of a matrix is made orthogonal by five Newton-Schulz
// steps, so that all its directions learn at the same pace; scaled to AdamW's usual size of update
// (Liu et al. 2025, "Muon is scalable for LLM training"): 0.2 sqrt(max(rows, columns)).
// AdamW: Loshchilov and Hutter 2019.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "train/networks/network.h"

namespace foretoken::train {

struct OptimizerOptions {
  double rate = 5e-3;        // of matrices
  double table_rate = 3e-3;  // of the others
  double decay = 0.05;       // of matrices, times the rate
  double momentum = 0.95, beta1 = 0.9, beta2 = 0.95;
  double clip = 1.0;  // of the norm of all gradients
};

class Optimizer {
 public:
  Optimizer(const Parameters& parameters, const OptimizerOptions& options);

  // One step: scale is the schedule's factor of both rates. Gives the norm of the gradients.
  double Step(Parameters& parameters, std::vector<torch::Tensor> gradients, double scale);

  // What a checkpoint holds beside the weights: two tensors for each parameter (the second empty
  // for Muon), and the number of steps.
  std::vector<torch::Tensor>& first() { return first_; }
  std::vector<torch::Tensor>& second() { return second_; }
  std::int64_t& steps() { return steps_; }

 private:
  OptimizerOptions options_;
  std::vector<torch::Tensor> first_, second_;
  std::int64_t steps_ = 0;
};

// The nearest matrix with equal singular values, roughly: they come to lie between 0.7 and 1.2.
torch::Tensor Orthogonal(const torch::Tensor& matrix, torch::Dtype compute);

}  // namespace foretoken::train
