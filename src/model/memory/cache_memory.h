// SPDX-License-Identifier: Apache-2.0
// model/memory/cache_memory.h: the memory of a network's keys and values, in blocks of 32 positions.
//
// Which sequence has which blocks is the business of kv/block_tables.h. Here a block is a number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "foretoken/result.h"
#include "model/memory/key_bounds.h"
#include "tensor/block_layout.h"

namespace foretoken::model {

struct CacheOptions {
  tensor::KvType k_type = tensor::KvType::kF16, v_type = tensor::KvType::kF16;
  int n_blocks = 0;
  int n_window_blocks = 0;  // of layers that see a window; 0: as many as the others
  bool key_bounds = false;  // rows may choose blocks by the bounds of their keys
};

// What one layer keeps for each position.
struct CacheLayer {
  int n_kv_heads = 0, head_dim = 0;  // no heads: it reads the keys and values of another layer
  bool windowed = false;             // it sees a window of positions
  bool values_in_keys = false;       // it keeps keys alone, whose first dimensions are the values

  int Blocks(const CacheOptions& options) const {
    return windowed && options.n_window_blocks != 0 ? options.n_window_blocks : options.n_blocks;
  }
};

class CacheMemory {
 public:
  // Errors: kUnsupported (a head size that the cache type cannot hold).
  [[nodiscard]] static Result<CacheMemory> Create(std::span<const CacheLayer> layers,
                                                  const CacheOptions& options);
  // Bytes that Create would reserve.
  static std::size_t Bytes(std::span<const CacheLayer> layers, const CacheOptions& options);

  // Where one head of a layer keeps its blocks. Block b begins at k + b * k_stride.
  struct HeadView {
    std::byte* k;
    std::byte* v;
    std::size_t k_stride, v_stride;  // bytes
  };
  HeadView Head(int layer, int head) noexcept;
  const CacheOptions& options() const noexcept { return options_; }
  // None, unless the options ask for them. Whoever writes keys through a HeadView forgets the block's.
  KeyBounds& bounds() noexcept { return bounds_; }

  // One block gets what another one holds, in layers that see all positions or in those that see a
  // window of them and have fewer blocks.
  void Copy(std::int32_t from, std::int32_t to, bool windowed) noexcept;
  // The parts that hold the block, in layers that have as many blocks as the options say.
  void AddParts(std::int32_t block, std::vector<std::span<std::byte>>& parts) noexcept;
  // Writes zeros, also to all blocks of layers that have fewer.
  void Clear(std::span<const std::int32_t> blocks) noexcept;

 private:
  struct Layer {
    int n_kv_heads, n_blocks;
    std::size_t k_begin, v_begin;              // bytes
    std::size_t k_block_bytes, v_block_bytes;  // of one head
  };

  CacheOptions options_;
  std::vector<Layer> layers_;
  // By layer, then by head, then by block: the blocks that one head reads in a pass lie together,
  // which suits the hardware's prefetcher.
  AlignedBytes k_, v_;
  KeyBounds bounds_;
};

}  // namespace foretoken::model
