// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/product.h"

#include <algorithm>

namespace foretoken::model {

void Multiply(const kernels::Kernels& kernels, const Linear& w, const Activation& x, int n_rows,
              const Activation& y, bool accumulate, int tile_begin, int tile_end) noexcept {
  if (tile_begin >= tile_end || n_rows == 0) return;
  const kernels::MatmulArgs args = {.tiles = w.tiles,
                                    .k = w.k,
                                    .tile_begin = tile_begin,
                                    .tile_end = tile_end,
                                    .n_rows = n_rows,
                                    .x = x.x,
                                    .x_stride = x.stride,
                                    .xq = x.q,
                                    .xd = x.d,
                                    .xs = x.s,
                                    .y = y.x,
                                    .y_stride = y.stride,
                                    .accumulate = accumulate};
  kernels.matmul[static_cast<std::size_t>(w.type)](args);
}

void MultiplyShare(const Workspace& space, const Linear& w, const Activation& x, int n_rows,
                   const Activation& y, int thread) noexcept {
  const auto share = space.pool.ShareOf(w.n_tiles, thread);
  Multiply(space.kernels, w, x, n_rows, y, false, share.begin, share.end);
}

void AddProduct(const Workspace& space, const Linear& w, const Activation& x, int n_rows,
                float scale, const Activation& residual, int thread) noexcept {
  const auto share = space.pool.ShareOf(w.n_tiles, thread);
  if (scale == 1)
    return Multiply(space.kernels, w, x, n_rows, residual, true, share.begin, share.end);
  const Activation delta = space.scratch.delta.View(residual.width);
  Multiply(space.kernels, w, x, n_rows, delta, false, share.begin, share.end);
  const int begin = share.begin * tensor::kTileOutputs,
            end = std::min(share.end * tensor::kTileOutputs, w.n_out);
  for (int row = 0; row < n_rows; ++row) {
    float* const to = residual.Row(row);
    const float* const from = delta.Row(row);
    for (int i = begin; i < end; ++i) to[i] += scale * from[i];
  }
}

void Quantise(const kernels::Kernels& kernels, const Activation& a, int row_begin, int n_rows,
              int begin, int end) noexcept {
  if (begin >= end) return;
  const std::int64_t blocks = a.width / tensor::kBlock;
  for (std::int64_t row = row_begin; row < row_begin + n_rows; ++row) {
    const std::int64_t block = row * blocks + begin / tensor::kBlock;
    kernels.quantize(a.x + row * a.stride + begin, a.stride, 1, end - begin,
                     a.q + row * a.width + begin, a.d + block, a.s + 2 * block);
  }
}

}  // namespace foretoken::model
