// SPDX-License-Identifier: Apache-2.0
// train/heads/head_network.h: the networks of heads in libtorch, unrolled over their own drafts.
//
// A head is one block that reads what its target computed. Row r of a window combines a token with
// a feature of the target and predicts the target's distribution of the token after it:
//   EAGLE-3 (Li et al. 2025): token x[r + 1] and the residual stream of three depths at r; the row
//     lies at position r, and the block's own output is the feature of its next step.
//   MTP (nextn; Gloeckle et al. 2024, in DeepSeek-V3's form): token x[r] and the normed output of
//     the target at r - 1 (zeros before the first); position r, and the head's normed output is the
//     feature of its next step.
//
// Training-time test: step 0 runs all rows on the target's features. In step s, row r uses the
// token s places further and its own output of step s - 1, and attends to the step-0 keys of rows
// up to r and to its own keys of steps 1 to s. That is what drafting sees, for every row at once.
#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "train/networks/network.h"
#include "train/networks/network_config.h"
#include "train/targets/target_reader.h"

namespace foretoken::train {

// The kinds of heads that can be trained (model/arch/heads).
enum class TrainedHead { kEagle, kMtp, kBlock };

struct HeadConfig {
  TrainedHead kind = TrainedHead::kEagle;
  NetworkConfig block;      // sizes of the head's blocks
  std::vector<int> layers;  // not for MTP: the target's block inputs that it reads; n_layers: the
                            // output
  std::string prefix = "blk.0.";
  // For block drafters alone (train/heads/block_network.h).
  int block_size = 0;
  Token mask = 0;

  // Row r of step s reads token r + s + Shift() and predicts the distribution at that position.
  int Shift() const { return kind == TrainedHead::kEagle ? 1 : 0; }
};

// What the frozen target contributes for a window of tokens [batch, length + 1].
struct HeadInput {
  torch::Tensor embedded;  // [batch, length + 1, dim], raw rows of the embedding
  torch::Tensor features;  // [batch, length, layers * dim or dim], of row r
  torch::Tensor normed;    // [batch, length, dim]: the output head turns it into the distributions
};
// REQUIRES: the target keeps head.layers.
HeadInput ReadTarget(const HeadConfig& head, TargetReader& target, const torch::Tensor& tokens);

// New weights that are similar to the target's last block with attention where shapes agree.
Parameters InitHead(const HeadConfig& head, const TargetReader& target, std::uint64_t seed);

// The input of the output head in each of `steps` steps: [steps, batch, length, dim], compute type.
// Row r of step s is meaningless if r + s + Shift() is beyond the window.
torch::Tensor Unroll(const HeadConfig& head, const Leaves& leaves, const HeadInput& input,
                     int steps);

// Drafts of the same rows in each step, and what they stand for.
struct Drafts {
  torch::Tensor hidden;  // [steps, batch, rows, dim]: the input of the output head, compute type
  torch::Tensor normed;  // the same of the target
};
// The drafts of the rows that have all steps in the window.
Drafts UnrolledDrafts(const HeadConfig& head, const Leaves& leaves, const HeadInput& input,
                      int steps);

// Sum over steps of decay^s KL_s over the sum of decay^s, where KL_s is the mean over rows of KL(p
// || softmax(hidden head^T)) and p is softmax(normed target_head^T).
//   hidden: as Unroll gives it; normed: [batch, length, dim]; both heads: [tokens, dim], the same
//   tokens. No [rows, tokens] tensor of the whole batch is ever made. The shapes are those of the
//   head's logits and the target's, which the formulas leave out.
torch::Tensor UnrolledLoss(const torch::Tensor& hidden, const torch::Tensor& head,
                           const torch::Tensor& normed, const torch::Tensor& target_head, int shift,
                           double decay, const LogitShape& shape = {},
                           const LogitShape& target_shape = {});

}  // namespace foretoken::train
