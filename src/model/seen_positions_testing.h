// SPDX-License-Identifier: Apache-2.0
// model/seen_positions_testing.h: how many positions of a cache the queries of a pass see.
#pragma once

#include <algorithm>

#include "kernels/dispatch.h"
#include "kernels/kernels.h"

namespace foretoken::model {

// The scalar kernels, with an attention that counts.
struct SeenPositions {
  static inline int most = 0;  // of one query; one thread at a time

  static const kernels::Kernels& Kernels() {
    static const kernels::Kernels table = [] {
      kernels::Kernels counting = kernels::KernelsFor(kernels::Isa::kScalar);
      counting.attention = &Attend;
      return counting;
    }();
    return table;
  }

 private:
  static void Attend(const kernels::AttentionArgs& args) {
    for (int row = 0; row < args.n_rows; ++row) {
      const int length = args.row_len[row] - args.skipped_blocks * tensor::kKvBlock;
      most = std::max(most, args.window > 0 ? std::min(args.window, length) : length);
    }
    kernels::KernelsFor(kernels::Isa::kScalar).attention(args);
  }
};

}  // namespace foretoken::model
