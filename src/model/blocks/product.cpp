// SPDX-License-Identifier: Apache-2.0
#include "model/blocks/product.h"

#include <algorithm>

namespace foretoken::model {

namespace {

kernels::MatmulArgs ArgsOf(const Linear& w, const Activation& x, int n_rows,
                           const Activation& y) noexcept {
  return {.tiles = w.tiles,
          .k = w.k,
          .tile_begin = 0,
          .tile_end = 0,
          .n_rows = n_rows,
          .x = x.x,
          .x_stride = x.stride,
          .xq = x.q,
          .xd = x.d,
          .xs = x.s,
          .x_rows = nullptr,
          .y = y.x,
          .y_stride = y.stride,
          .accumulate = false};
}

void Run(const kernels::Kernels& kernels, const Linear& w, kernels::MatmulArgs args, int tile_begin,
         int tile_end) noexcept {
  if (tile_begin >= tile_end || args.n_rows == 0) return;
  args.tile_begin = tile_begin - w.first_tile;
  args.tile_end = tile_end - w.first_tile;
  args.y += std::int64_t{w.first_tile} * tensor::kTileOutputs;
  kernels.matmul[static_cast<std::size_t>(w.type)](args);
}

}  // namespace

void Multiply(const kernels::Kernels& kernels, const Linear& w, const Activation& x, int n_rows,
              const Activation& y, bool accumulate, int tile_begin, int tile_end) noexcept {
  kernels::MatmulArgs args = ArgsOf(w, x, n_rows, y);
  args.accumulate = accumulate;
  Run(kernels, w, args, tile_begin, tile_end);
}

void MultiplyRows(const kernels::Kernels& kernels, const Linear& w, const Activation& x,
                  const std::int32_t* x_rows, int n_rows, const Activation& y, int tile_begin,
                  int tile_end) noexcept {
  kernels::MatmulArgs args = ArgsOf(w, x, n_rows, y);
  args.x_rows = x_rows;
  Run(kernels, w, args, tile_begin, tile_end);
}

void MultiplyShare(const Workspace& space, const Linear& w, const Activation& x, int n_rows,
                   const Activation& y, int thread) noexcept {
  const auto share = space.TilesOf(w, thread);
  Multiply(space.kernels, w, x, n_rows, y, false, share.begin, share.end);
}

void MultiplyAll(const Workspace& space, int n_rows, std::initializer_list<Product> products,
                 int thread) noexcept {
  int n_tiles = 0, first = 0;
  for (const Product& product : products) n_tiles += product.w.n_tiles;
  const auto share = space.pool.ShareOf(n_tiles, thread);
  for (const auto& [w, x, y] : products) {
    const int begin = std::clamp(share.begin - first, 0, w.n_tiles),
              end = std::clamp(share.end - first, 0, w.n_tiles);
    Multiply(space.kernels, w, x, n_rows, y, false, w.first_tile + begin, w.first_tile + end);
    first += w.n_tiles;
  }
}

void AddProduct(const Workspace& space, const Linear& w, const Activation& x, int n_rows,
                const Addition& how, const Activation& residual, int thread) noexcept {
  const auto share = space.TilesOf(w, thread);
  if (how.scale == 1 && how.bias == nullptr && how.norm == nullptr && !how.apart)
    return Multiply(space.kernels, w, x, n_rows, residual, true, share.begin, share.end);
  const Activation delta = space.scratch.delta.View(residual.width);
  Multiply(space.kernels, w, x, n_rows, delta, false, share.begin, share.end);
  const int begin = share.begin * tensor::kTileOutputs,
            end = std::min(share.end * tensor::kTileOutputs, residual.width);
  for (int row = 0; row < n_rows; ++row) {
    float* const from = delta.Row(row);
    if (how.bias != nullptr)
      for (int i = begin; i < end; ++i) from[i] += how.bias[i];
    if (how.norm != nullptr || how.apart) continue;
    float* const to = residual.Row(row);
    for (int i = begin; i < end; ++i) to[i] += how.scale * from[i];
  }
}

Activation OutputOf(const Workspace& space, const Addition& how, const Activation& residual) {
  const bool in_delta = how.norm != nullptr || how.apart;
  return in_delta ? space.scratch.delta.View(residual.width) : residual;
}

void AddNormed(const Workspace& space, const Addition& how, const Activation& from,
               const Activation& residual, ThreadPool::Share rows) noexcept {
  for (int row = rows.begin; row < rows.end; ++row) {
    float *const x = from.Row(row), *const to = residual.Row(row);
    space.kernels.rms_norm(x, how.norm, residual.width, how.norm_eps, x);
    for (int i = 0; i < residual.width; ++i) to[i] += how.scale * x[i];
  }
}

void AddNormed(const Workspace& space, const Addition& how, const Activation& residual,
               ThreadPool::Share rows) noexcept {
  AddNormed(space, how, space.scratch.delta.View(residual.width), residual, rows);
}

void NormOrCopy(const Workspace& space, const float* x, const float* norm, int n, float eps,
                float* y) noexcept {
  if (norm != nullptr)
    space.kernels.rms_norm(x, norm, n, eps, y);
  else
    std::copy_n(x, n, y);
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
