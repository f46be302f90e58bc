// SPDX-License-Identifier: Apache-2.0
// model/blocks/product.h: products of matrices and activations, and norms: what several blocks need.
#pragma once

#include <initializer_list>

#include "model/blocks/phase.h"
#include "model/weights/weights.h"

namespace foretoken::model {

// y = W x, or y = y + W x with accumulate, for the first n_rows rows and the tiles [tile_begin,
// tile_end). A quantised W reads the int8 form of x.
void Multiply(const kernels::Kernels& kernels, const Linear& w, const Activation& x, int n_rows,
              const Activation& y, bool accumulate, int tile_begin, int tile_end) noexcept;

// y = W x for the tiles [tile_begin, tile_end). Row i of y belongs to row x_rows[i] of x; null: to
// row i.
void MultiplyRows(const kernels::Kernels& kernels, const Linear& w, const Activation& x,
                  const std::int32_t* x_rows, int n_rows, const Activation& y, int tile_begin,
                  int tile_end) noexcept;

// y = W x for the thread's share of the tiles.
void MultiplyShare(const Workspace& space, const Linear& w, const Activation& x, int n_rows,
                   const Activation& y, int thread) noexcept;

struct Product {
  const Linear& w;
  const Activation &x, &y;
};

// y = W x for all products. The matrices are one range of tiles, of which the thread has an even share.
void MultiplyAll(const Workspace& space, int n_rows, std::initializer_list<Product> products,
                 int thread) noexcept;

// How a product joins the residual stream: x + scale * norm(product + bias). Each step rounds.
struct Addition {
  const float* bias = nullptr;  // [dim], or null
  const float* norm = nullptr;  // [dim], or null: it is not normed
  float norm_eps = 0, scale = 1;
  bool apart = false;  // only `delta` = product + bias; another block adds it
};

// residual = residual + scale * (W x + bias) for the thread's share of the tiles. Where there is a
// norm, only `delta` of the scratch memory = W x + bias, and AddNormed must follow. The same where
// it is added apart.
void AddProduct(const Workspace& space, const Linear& w, const Activation& x, int n_rows,
                const Addition& how, const Activation& residual, int thread) noexcept;
// What AddProduct writes: what ranks gather after it.
Activation OutputOf(const Workspace& space, const Addition& how, const Activation& residual);
// residual = residual + scale * norm(from) for the given rows, where `from` is overwritten; without
// it, `delta` of the scratch memory.
void AddNormed(const Workspace& space, const Addition& how, const Activation& from,
               const Activation& residual, ThreadPool::Share rows) noexcept;
void AddNormed(const Workspace& space, const Addition& how, const Activation& residual,
               ThreadPool::Share rows) noexcept;

// y = rms_norm(x), or y = x where norm is null.
void NormOrCopy(const Workspace& space, const float* x, const float* norm, int n, float eps,
                float* y) noexcept;

// Writes the int8 form of columns [begin, end), whole blocks of 32, of n_rows rows.
void Quantise(const kernels::Kernels& kernels, const Activation& a, int row_begin, int n_rows,
              int begin, int end) noexcept;
inline void Quantise(const kernels::Kernels& kernels, const Activation& a,
                     ThreadPool::Share rows) noexcept {
  Quantise(kernels, a, rows.begin, rows.end - rows.begin, 0, a.width);
}

}  // namespace foretoken::model
