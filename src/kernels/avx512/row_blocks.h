// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/row_blocks.h: cuts the rows of a pass into blocks that fit the registers. For this
// folder and amx/.
#pragma once

#include "kernels/kernels.h"

namespace foretoken::kernels::avx512 {
namespace {

using RowsFunction = void (*)(const MatmulArgs& a, int row, int tile_begin, int tile_end);

// Cuts the rows into even blocks of at most max_rows. Where there are several, they take turns on a
// group of strips that stays in the second-level cache, so that memory is read once.
void ForRowBlocks(const MatmulArgs& a, std::int64_t strip_bytes, const RowsFunction* by_rows,
                  int max_rows) {
  const int n_row_blocks = (a.n_rows + max_rows - 1) / max_rows;
  int group = a.tile_end - a.tile_begin;
  if (n_row_blocks > 1) {
    const std::int64_t fit = (std::int64_t{4096} << 10) / (strip_bytes + 1);
    group = fit < 32 ? 32 : static_cast<int>(fit);
  }
  for (int tile = a.tile_begin; tile < a.tile_end; tile += group) {
    const int tile_end = a.tile_end - tile < group ? a.tile_end : tile + group;
    for (int block = 0; block < n_row_blocks; ++block) {
      const int row = static_cast<int>(std::int64_t{a.n_rows} * block / n_row_blocks);
      const int row_end = static_cast<int>(std::int64_t{a.n_rows} * (block + 1) / n_row_blocks);
      by_rows[row_end - row - 1](a, row, tile, tile_end);
    }
  }
}

}  // namespace
}  // namespace foretoken::kernels::avx512
