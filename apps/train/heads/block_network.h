// SPDX-License-Identifier: Apache-2.0
// train/heads/block_network.h: drafters of whole blocks in libtorch (DFlash; Chen et al. 2026).
//
// A drafter has a few layers. g = norm(fc(features)) of each position before the newest token gives
// keys and values in every layer. A block of rows, the newest token and masks behind it, sees these
// and the rows of the block up to the row itself; row i gives the distribution of draft i. (Published
// drafters let a row see the masks behind it too. Those masks know nothing more, and without them
// the drafts are the same for every number of drafts.)
//
// In training a window of text has a block at every block_size-th position, all in one pass. A block
// that begins at position p reads the features before p. Its row i learns the target's distribution
// of the token at p + i.
#pragma once

#include <torch/torch.h>

#include "train/heads/head_network.h"

namespace foretoken::train {

// New weights: fc, enc.output_norm, the layers, output_norm.
Parameters InitBlocks(const HeadConfig& head, const TargetReader& target, std::uint64_t seed);

// A row of the drafts is a block. tokens: [batch, length + 1]; the first block begins at position
// 1 + first, 0 <= first < block_size. REQUIRES: length > 2 block_size; the target keeps head.layers.
Drafts RunBlocks(const HeadConfig& head, const Leaves& leaves, TargetReader& target,
                 const torch::Tensor& tokens, std::int64_t first);

// The sum of decay^i KL_i over that of decay^i, as UnrolledLoss.
torch::Tensor BlockLoss(const Drafts& drafts, const torch::Tensor& head,
                        const torch::Tensor& target_head, double decay,
                        const LogitShape& target_shape);

}  // namespace foretoken::train
