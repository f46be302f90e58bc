// SPDX-License-Identifier: Apache-2.0
// model/memory/key_bounds.h: the least and the largest number of each dimension over the 32 keys of a
// block, by which a row chooses the blocks that it sees (blocks/block_choice.h; Tang et al. 2024, "Quest").
//
// The bounds of a block are learned when a pass needs them and forgotten when a pass writes to it, so they
// are always those of its keys. Layers that see a window of positions, layers without keys of their own and
// latent attention have none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "kernels/kernels.h"
#include "tensor/block_layout.h"

namespace foretoken::model {

struct CacheLayer;

class KeyBounds {
 public:
  static std::size_t Bytes(std::span<const CacheLayer> layers, int n_blocks);

  KeyBounds() = default;  // keeps none
  KeyBounds(std::span<const CacheLayer> layers, int n_blocks);

  bool kept() const noexcept { return !known_.empty(); }
  // The bounds of a head, as tiles of F16: 16 blocks side by side, [ceil(n_blocks / 16), 2 head_dim, 16],
  // the largest numbers and then the least. Null: the layer has none.
  const std::uint16_t* Of(int layer, int head) const noexcept;

  bool Knows(std::int32_t block) const noexcept {
    return known_[static_cast<std::size_t>(block)] != 0;
  }
  void Forget(std::int32_t block) noexcept { Set(block, 0); }
  // The caller has learned them in all heads, or does so before any pass reads them.
  void Note(std::int32_t block) noexcept { Set(block, 1); }

  // The heads of all layers that have bounds, in one row.
  int n_heads() const noexcept { return static_cast<int>(heads_.size()); }
  struct Head {
    int layer, head;  // of the layer
    int head_dim;
    std::size_t begin;  // in the tiles
  };
  const Head& HeadAt(int i) const noexcept { return heads_[static_cast<std::size_t>(i)]; }
  int head_dim() const noexcept { return head_dim_; }  // the largest
  // Reads the keys of a block, which begin at `keys`, for HeadAt(i). work: [2 head_dim]. Threads may learn
  // different heads.
  void Learn(int i, std::int32_t block, const std::byte* keys, tensor::KvType type,
             const kernels::Kernels& kernels, float* work) noexcept;

 private:
  void Set(std::int32_t block, std::uint8_t known) noexcept {
    if (kept()) known_[static_cast<std::size_t>(block)] = known;
  }

  std::vector<Head> heads_;
  std::vector<int> first_head_;      // by layer: its first one in heads_; -1: it has none
  std::vector<std::uint8_t> known_;  // [n_blocks]
  AlignedBuffer<std::uint16_t> tiles_;
  int head_dim_ = 0;
};

}  // namespace foretoken::model
