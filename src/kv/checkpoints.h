// SPDX-License-Identifier: Apache-2.0
// kv/checkpoints.h: places for copies of recurrent states. A copy belongs to a block of the cache and
// goes with that block. A text can go on behind each position of its Reach: the copy has the inputs of
// those that its state has not taken in. Most copies reach one position, which is the end of their block.
//
// A sequence that reads on has one copy that moves along with it, from block to block. Stay leaves
// that copy where it is. Where no place is free, the copy goes that was made or used longest ago, and
// before all others those that a newer copy of the same text has made superfluous (GiveUp).
//
// All memory is taken in the constructor. One thread owns and calls the checkpoints.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "kv/idle_blocks.h"
#include "kv/segment.h"

namespace foretoken::kv {

class Checkpoints {
 public:
  static constexpr std::int32_t kNone = -1;
  struct Reach {
    Pos first = 0;  // the positions before are those that the state has taken in
    Pos last = 0;   // at most kCopiedInputs more, and in the block, or its end
  };

  Checkpoints(int n_places, int n_blocks, int n_sequences);

  // The place of the block's copy, or kNone.
  std::int32_t Of(std::int32_t block) const noexcept {
    return of_.empty() ? kNone : of_[static_cast<std::size_t>(block)];
  }
  // A place for the copy that moves with the sequence, which belongs to `block` from now on; kNone:
  // all places are held. REQUIRES: the block has no copy.
  std::int32_t Attach(SeqId seq, std::int32_t block, Reach reach) noexcept;
  // Attach, for a copy that moves with no sequence.
  std::int32_t Put(std::int32_t block, Reach reach) noexcept;
  // Called with a copy's place before another copy takes it, unless the copy was given up.
  void OnLost(std::function<void(std::int32_t place)> call) { on_lost_ = std::move(call); }
  // REQUIRES: a copy is in the place.
  const Reach& reach(std::int32_t place) const noexcept { return At(place).reach; }
  // The block that the place's copy belongs to; kNone: none.
  std::int32_t BlockOf(std::int32_t place) const noexcept { return At(place).block; }
  // The sequence's moving copy stays with its block; the next Attach takes another place.
  void Stay(SeqId seq) noexcept;

  // A copy, also when its place has got another one.
  struct Name {
    std::int32_t place = kNone;
    std::int64_t number = 0;
  };
  Name NameOf(std::int32_t place) const noexcept { return {place, At(place).number}; }
  // The copy that moves with the sequence.
  Name Moving(SeqId seq) const noexcept {
    const std::int32_t place = moving_[static_cast<std::size_t>(seq)];
    return place == kNone ? Name{} : NameOf(place);
  }
  // A text has begun with the place's copy.
  void Use(std::int32_t place) noexcept { ++At(place).n_texts; }
  // A newer copy serves the text of this one: it goes first, unless several texts began with it.
  void GiveUp(Name name) noexcept;

  // Nobody else gets a place between Hold and Release. The copy stays with its block.
  void Hold(std::int32_t place) noexcept;
  void Release(std::int32_t place) noexcept;

  // `known` takes the place of `own`, which holds the same positions.
  void Replace(std::int32_t own, std::int32_t known) noexcept;
  // The positions from `at` on get other content.
  void Cut(std::int32_t block, Pos at) noexcept;
  // The block gets other content: its copy goes.
  void Detach(std::int32_t block) noexcept;

  int n_places() const { return static_cast<int>(places_.size()); }
  int n_free() const { return static_cast<int>(free_.size()); }

 private:
  struct Place {
    std::int32_t block = kNone;
    int n_users = 0;
    SeqId moves_with = kNone;
    Reach reach = {};
    std::int64_t number = 0;  // of its copy
    int n_texts = 0;          // that began with it
    bool given_up = false;
  };
  Place& At(std::int32_t place) { return places_[static_cast<std::size_t>(place)]; }
  const Place& At(std::int32_t place) const { return places_[static_cast<std::size_t>(place)]; }
  std::int32_t& Link(std::int32_t block) { return of_[static_cast<std::size_t>(block)]; }
  void StopMoving(Place& place) noexcept;

  std::vector<Place> places_;
  std::vector<std::int32_t> of_;      // by block; empty where there are no places
  std::vector<std::int32_t> moving_;  // by sequence
  std::int64_t n_made_ = 0;
  std::vector<std::int32_t> free_;  // a stack with the lowest number on top
  IdleBlocks idle_;                 // places with a copy that nobody holds
  std::function<void(std::int32_t)> on_lost_;
};

}  // namespace foretoken::kv
