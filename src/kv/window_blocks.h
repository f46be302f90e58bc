// SPDX-License-Identifier: Apache-2.0
// kv/window_blocks.h: blocks of the layers that see a window of positions.
//
// These layers have a memory of their own, with fewer blocks: a sequence drops a block when its
// positions are out of sight. A block whose text is known (an *owner* in the prefix index, which is
// the block of the other layers) stays attached to that owner. It is idle when no sequence holds
// it, and it is taken, the longest idle first, when no block is free. So a shared prefix can be used
// as far as the blocks that its next position sees are still there.
#pragma once

#include <cstdint>
#include <vector>

#include "kv/idle_blocks.h"

namespace foretoken::kv {

class WindowBlocks {
 public:
  static constexpr std::int32_t kNone = -1;

  WindowBlocks(int n_blocks, int n_owners);

  // REQUIRES: not all blocks are held. A block that one sequence holds.
  std::int32_t Take() noexcept;
  void Hold(std::int32_t block) noexcept;
  void Release(std::int32_t block) noexcept;

  // The block that is attached to the owner, or kNone.
  std::int32_t Of(std::int32_t owner) const noexcept {
    return of_[static_cast<std::size_t>(owner)];
  }
  // REQUIRES: neither has another.
  void Attach(std::int32_t block, std::int32_t owner) noexcept;
  // The owner leaves the index.
  void Detach(std::int32_t owner) noexcept;

  int n_blocks() const { return static_cast<int>(blocks_.size()); }
  int n_free() const { return static_cast<int>(free_.size()); }
  int n_idle() const { return idle_.size(); }

 private:
  struct Block {
    int n_users = 0;
    std::int32_t owner = kNone;
  };
  Block& At(std::int32_t block) { return blocks_[static_cast<std::size_t>(block)]; }

  std::vector<Block> blocks_;
  std::vector<std::int32_t> of_;    // by owner
  std::vector<std::int32_t> free_;  // a stack with the lowest number on top
  IdleBlocks idle_;
};

}  // namespace foretoken::kv
