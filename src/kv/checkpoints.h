// SPDX-License-Identifier: Apache-2.0
// kv/checkpoints.h: places for copies of recurrent states. A copy belongs to the block (of the cache)
// whose last position was the last one that the state had taken in, and goes with that block.
//
// A sequence that reads on has one copy that moves along with it, from block to block. Stay leaves
// that copy where it is. Where no place is free, the copy goes that was made or used longest ago.
//
// All memory is taken in the constructor. One thread owns and calls the checkpoints.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "kv/idle_blocks.h"

namespace foretoken::kv {

class Checkpoints {
 public:
  static constexpr std::int32_t kNone = -1;

  Checkpoints(int n_places, int n_blocks, int n_sequences);

  // The place of the block's copy, or kNone.
  std::int32_t Of(std::int32_t block) const noexcept {
    return of_.empty() ? kNone : of_[static_cast<std::size_t>(block)];
  }
  // A place for the copy that moves with the sequence, which belongs to `block` from now on; kNone:
  // all places are held. REQUIRES: the block has no copy.
  std::int32_t Attach(SeqId seq, std::int32_t block) noexcept;
  // The sequence's moving copy stays with its block; the next Attach takes another place.
  void Stay(SeqId seq) noexcept;

  // Nobody else gets a place between Hold and Release. The copy stays with its block.
  void Hold(std::int32_t place) noexcept;
  void Release(std::int32_t place) noexcept;

  // `known` takes the place of `own`, which holds the same positions.
  void Replace(std::int32_t own, std::int32_t known) noexcept;
  // The block gets other content: its copy goes.
  void Detach(std::int32_t block) noexcept;

  int n_places() const { return static_cast<int>(places_.size()); }
  int n_free() const { return static_cast<int>(free_.size()); }

 private:
  struct Place {
    std::int32_t block = kNone;
    int n_users = 0;
    SeqId moves_with = kNone;
  };
  Place& At(std::int32_t place) { return places_[static_cast<std::size_t>(place)]; }
  std::int32_t& Link(std::int32_t block) { return of_[static_cast<std::size_t>(block)]; }
  void StopMoving(Place& place) noexcept;

  std::vector<Place> places_;
  std::vector<std::int32_t> of_;      // by block; empty where there are no places
  std::vector<std::int32_t> moving_;  // by sequence
  std::vector<std::int32_t> free_;    // a stack with the lowest number on top
  IdleBlocks idle_;                   // places with a copy that nobody holds
};

}  // namespace foretoken::kv
