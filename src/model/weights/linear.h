// SPDX-License-Identifier: Apache-2.0
// model/weights/linear.h: a matrix as products read it.
#pragma once

#include <algorithm>
#include <cstddef>

#include "tensor/dtype.h"

namespace foretoken::model {

// A matrix [n_out, k] in tiles, or those of its tiles that this rank has: [first_tile, first_tile +
// n_tiles). `tiles` is null where the architecture has no such matrix.
struct Linear {
  tensor::TileType type = tensor::TileType::kF32;
  int n_out = 0, k = 0, first_tile = 0, n_tiles = 0;
  const std::byte* tiles = nullptr;

  bool quantised() const { return tensor::IsQuantised(type); }
};

// Matrices of one shape, one for each expert, or for each head.
struct ExpertLinear {
  Linear first;                  // of expert 0
  std::size_t expert_bytes = 0;  // from one expert's tiles to the next one's

  Linear Of(int expert) const {
    Linear w = first;
    w.tiles += static_cast<std::size_t>(expert) * expert_bytes;
    return w;
  }
  bool quantised() const { return first.quantised(); }
};

}  // namespace foretoken::model
