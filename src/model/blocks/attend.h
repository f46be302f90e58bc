// SPDX-License-Identifier: Apache-2.0
// model/blocks/attend.h: the attention of some rows of a sequence in a pass that may have a window.
#pragma once

#include "kernels/kernels.h"
#include "model/pass.h"

namespace foretoken::model {

// Rows that skip equally many blocks share a call. REQUIRES: the layer has no window, args.skipped_blocks
// is 0.
inline void Attend(const kernels::Kernels& kernels, kernels::AttentionArgs args,
                   const Pass& pass) noexcept {
  if (pass.window == 0) return kernels.attention(args);
  for (int left = args.n_rows; left > 0; left -= args.n_rows) {
    args.skipped_blocks = pass.SkippedBlocks(*args.row_len);
    args.n_rows = 1;
    while (args.n_rows < left &&
           pass.SkippedBlocks(args.row_len[args.n_rows]) == args.skipped_blocks)
      ++args.n_rows;
    kernels.attention(args);
    args.q += args.n_rows * args.q_stride, args.out += args.n_rows * args.out_stride;
    args.row_len += args.n_rows;
  }
}

}  // namespace foretoken::model
