// SPDX-License-Identifier: Apache-2.0
// model/blocks/product.h: products of matrices and activations, and norms: what several blocks need.
#pragma once

#include "model/blocks/phase.h"
#include "model/weights/weights.h"

namespace foretoken::model {

// y = W x, or y = y + W x with accumulate, for the first n_rows rows and the tiles [tile_begin,
// tile_end). A quantised W reads the int8 form of x.
void Multiply(const kernels::Kernels& kernels, const Linear& w, const Activation& x, int n_rows,
              const Activation& y, bool accumulate, int tile_begin, int tile_end) noexcept;

// y = W x for the thread's share of the tiles.
void MultiplyShare(const Workspace& space, const Linear& w, const Activation& x, int n_rows,
                   const Activation& y, int thread) noexcept;

// residual = residual + scale * (W x) for the thread's share of the tiles. Where scale is not 1,
// the product is rounded, then the scaled product, then the sum.
void AddProduct(const Workspace& space, const Linear& w, const Activation& x, int n_rows,
                float scale, const Activation& residual, int thread) noexcept;

// Writes the int8 form of columns [begin, end), whole blocks of 32, of n_rows rows.
void Quantise(const kernels::Kernels& kernels, const Activation& a, int row_begin, int n_rows,
              int begin, int end) noexcept;
inline void Quantise(const kernels::Kernels& kernels, const Activation& a,
                     ThreadPool::Share rows) noexcept {
  Quantise(kernels, a, rows.begin, rows.end - rows.begin, 0, a.width);
}

}  // namespace foretoken::model
