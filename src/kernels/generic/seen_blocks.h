// SPDX-License-Identifier: Apache-2.0
// kernels/generic/seen_blocks.h: the blocks of a cache that a row of attention sees (AttentionArgs::skipped_blocks).
#pragma once

#include "kernels/kernels.h"

namespace foretoken::kernels {
namespace {  // in each instruction set's own code

// How many positions of the blocks that it sees end before a row's end.
inline int SeenLength(const AttentionArgs& args, int row) noexcept {
  return args.row_len[row] - args.skipped_blocks * tensor::kKvBlock;
}
// The number of the block that holds the positions from 32 * block on of those that a row sees.
inline std::int32_t SeenBlock(const AttentionArgs& args, int block) noexcept {
  return args.blocks[block == 0 ? 0 : block + args.skipped_blocks];
}

}  // namespace
}  // namespace foretoken::kernels
