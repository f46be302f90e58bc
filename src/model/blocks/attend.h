// SPDX-License-Identifier: Apache-2.0
// model/blocks/attend.h: the attention of some rows of a sequence in a pass that may have a window.
#pragma once

#include "kernels/kernels.h"
#include "model/blocks/block_choice.h"
#include "model/pass.h"

namespace foretoken::model {

// With what rows choose blocks before their window.
struct ChoiceOfBlocks {
  BlockChoice* choice = nullptr;          // of the thread
  const std::uint16_t* bounds = nullptr;  // of the head; null: its rows choose none
};

// The first row of args, which skips blocks, sees the best of them all the same.
inline void AttendBest(const kernels::Kernels& kernels, kernels::AttentionArgs args,
                       const Pass& pass, const ChoiceOfBlocks& of) noexcept {
  args.n_rows = 1;
  const BlockChoice::Seen seen = of.choice->Choose(kernels, args, of.bounds, pass.best_blocks);
  args.skipped_blocks = 0;
  args.blocks = seen.blocks, args.row_len = &seen.length;
  kernels.attention(args);
}

// Rows that skip equally many blocks share a call, unless each chooses its own. REQUIRES: the layer has no
// window, args.skipped_blocks is 0.
inline void Attend(const kernels::Kernels& kernels, kernels::AttentionArgs args, const Pass& pass,
                   const ChoiceOfBlocks& of = {}) noexcept {
  if (pass.window == 0) return kernels.attention(args);
  for (int left = args.n_rows; left > 0; left -= args.n_rows) {
    args.skipped_blocks = pass.SkippedBlocks(*args.row_len);
    args.n_rows = 1;
    if (pass.best_blocks > 0 && of.bounds != nullptr && args.skipped_blocks > 0) {
      AttendBest(kernels, args, pass, of);
    } else {
      while (args.n_rows < left &&
             pass.SkippedBlocks(args.row_len[args.n_rows]) == args.skipped_blocks)
        ++args.n_rows;
      kernels.attention(args);
    }
    args.q += args.n_rows * args.q_stride, args.out += args.n_rows * args.out_stride;
    args.row_len += args.n_rows;
  }
}

}  // namespace foretoken::model
