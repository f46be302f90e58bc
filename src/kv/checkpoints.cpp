// SPDX-License-Identifier: Apache-2.0
#include "kv/checkpoints.h"

#include <utility>

#include "base/check.h"

namespace foretoken::kv {

Checkpoints::Checkpoints(int n_places, int n_blocks, int n_sequences)
    : places_(static_cast<std::size_t>(n_places)),
      of_(n_places == 0 ? 0 : static_cast<std::size_t>(n_blocks), kNone),
      moving_(static_cast<std::size_t>(n_sequences), kNone),
      idle_(n_places) {
  free_.reserve(static_cast<std::size_t>(n_places));
  for (int place = n_places - 1; place >= 0; --place) free_.push_back(place);
}

std::int32_t Checkpoints::Attach(SeqId seq, std::int32_t block, Reach reach) noexcept {
  std::int32_t& moving = moving_[static_cast<std::size_t>(seq)];
  if (moving != kNone) Detach(At(moving).block);
  const std::int32_t place = Put(block, reach);
  if (place == kNone) return kNone;
  At(place).moves_with = seq;
  return moving = place;
}

std::int32_t Checkpoints::Put(std::int32_t block, Reach reach) noexcept {
  FORETOKEN_CHECK(Of(block) == kNone);
  if (free_.empty() && idle_.size() > 0) {
    const std::int32_t oldest = idle_.oldest();
    if (on_lost_ && !At(oldest).given_up) on_lost_(oldest);
    Detach(At(oldest).block);
  }
  if (free_.empty()) return kNone;
  const std::int32_t place = free_.back();
  free_.pop_back();
  At(place) = {.block = block, .reach = reach, .number = ++n_made_};
  Link(block) = place;
  idle_.Append(place);
  return place;
}

void Checkpoints::Stay(SeqId seq) noexcept {
  const std::int32_t moving = moving_[static_cast<std::size_t>(seq)];
  if (moving != kNone) StopMoving(At(moving));
}

void Checkpoints::StopMoving(Place& place) noexcept {
  if (place.moves_with == kNone) return;
  moving_[static_cast<std::size_t>(std::exchange(place.moves_with, kNone))] = kNone;
}

void Checkpoints::GiveUp(Name name) noexcept {
  if (name.place == kNone) return;
  Place& place = At(name.place);
  if (place.number != name.number || place.block == kNone) return;
  if (place.n_users > 0 || place.n_texts > 1) return;
  place.given_up = true;
  idle_.Remove(name.place);
  idle_.Prepend(name.place);
}

// A copy that is used again is worth keeping where it is.
void Checkpoints::Hold(std::int32_t place) noexcept {
  StopMoving(At(place));
  At(place).given_up = false;
  if (At(place).n_users++ == 0) idle_.Remove(place);
}

void Checkpoints::Release(std::int32_t place) noexcept {
  Place& p = At(place);
  if (--p.n_users > 0) return;
  if (p.block == kNone)
    free_.push_back(place);
  else
    idle_.Append(place);
}

void Checkpoints::Replace(std::int32_t own, std::int32_t known) noexcept {
  const std::int32_t place = Of(own);
  if (place == kNone) return;
  if (Of(known) != kNone) return Detach(own);
  Link(own) = kNone;
  Link(known) = place;
  At(place).block = known;
}

void Checkpoints::Cut(std::int32_t block, Pos at) noexcept {
  const std::int32_t place = Of(block);
  if (place == kNone || At(place).reach.last <= at) return;
  if (At(place).reach.first > at) return Detach(block);
  At(place).reach.last = at;
}

void Checkpoints::Detach(std::int32_t block) noexcept {
  const std::int32_t place = Of(block);
  if (place == kNone) return;
  Link(block) = kNone;
  At(place).block = kNone;
  StopMoving(At(place));
  if (At(place).n_users > 0) return;
  idle_.Remove(place);
  free_.push_back(place);
}

}  // namespace foretoken::kv
