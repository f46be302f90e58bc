// SPDX-License-Identifier: Apache-2.0
// kernels/repack.h: turns a matrix of a GGUF file into the tiles that matmul reads.
#pragma once

#include <cstddef>

#include "tensor/block_layout.h"

namespace foretoken::kernels {

// Bytes of one strip of 16 outputs, and of a whole matrix.
std::size_t StripBytes(tensor::TileType type, int k);
inline int TilesFor(int n_out) {
  return (n_out + tensor::kTileOutputs - 1) / tensor::kTileOutputs;
}
inline std::size_t TiledBytes(tensor::TileType type, int n_out, int k) {
  return StripBytes(type, k) * static_cast<std::size_t>(TilesFor(n_out));
}

// Repacks strips [tile_begin, tile_end) of a row-major matrix [n_out, k] into dst, which holds all
// strips, in the tile of `type`. The matrix has this type in the file, and rows without padding.
// Disjoint ranges may run on different threads.
void Repack(tensor::DType type, const void* rows, int n_out, int k, int tile_begin, int tile_end,
            void* dst);

}  // namespace foretoken::kernels
