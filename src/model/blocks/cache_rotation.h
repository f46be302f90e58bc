// SPDX-License-Identifier: Apache-2.0
// model/blocks/cache_rotation.h: the rotation of what a cache of four bits keeps.
//
// Where a few numbers of a head are much larger than the others, four bits with a scale for each 32 of
// them leave little of the others. So heads are multiplied by a Hadamard matrix before they are stored,
// which makes their numbers alike. Queries are multiplied by it too, which leaves their products with
// keys as they are; and so are the sums of values, as the matrix is its own inverse.
#pragma once

#include <bit>
#include <numeric>

#include "kernels/kernels.h"

namespace foretoken::model {

class CacheRotation {
 public:
  // head_dim: of what is stored; read_dim: how many of these numbers are read as values.
  CacheRotation(tensor::KvType type, int head_dim, int read_dim) {
    if (type != tensor::KvType::kQ4_0) return;
    const int common = std::gcd(head_dim, read_dim);
    block_ = common & -common;
    if (block_ < tensor::kBlock) block_ = 0;
  }

  // n numbers of heads that are stored, and of what is multiplied by or added from stored ones. The
  // factors of both are powers of two, whose product is 1 / block.
  void Store(const kernels::Kernels& kernels, float* x, int n) const noexcept {
    if (block_ > 0)
      kernels.hadamard(x, n, block_, 1.0f / static_cast<float>(1 << (Bits() + 1) / 2));
  }
  void Read(const kernels::Kernels& kernels, float* x, int n) const noexcept {
    if (block_ > 0) kernels.hadamard(x, n, block_, 1.0f / static_cast<float>(1 << Bits() / 2));
  }

 private:
  int Bits() const noexcept { return std::countr_zero(static_cast<unsigned>(block_)); }

  int block_ = 0;  // numbers that are rotated together; 0: nothing is
};

}  // namespace foretoken::model
