// SPDX-License-Identifier: Apache-2.0
#include "kv/states.h"

#include <algorithm>
#include <utility>

namespace foretoken::kv {
namespace {

constexpr std::int32_t kNone = Checkpoints::kNone;

}  // namespace

States::States(const Shape& shape)
    : shape_(shape),
      sequences_(static_cast<std::size_t>(shape.n_sequences)),
      checkpoints_(shape.n_checkpoints, shape.n_blocks, shape.n_sequences) {}

// Rows that may be taken back are not taken in, unless there are more than the runner keeps.
StateMove States::Move(const Segment& segment, std::span<const std::int32_t> blocks) noexcept {
  if (none()) return {};
  Sequence& s = sequences_[Index(segment.seq)];
  const Pos end = segment.first_position + segment.n_rows;
  StateMove move = {.from = s.taken_in, .to = std::max(s.taken_in, end - shape_.rows)};
  if (segment.n_certain > 0)
    move.to = std::max(move.to, segment.first_position + segment.n_certain);
  move.source = s.source;
  SetSource(s, kNone);
  if (shape_.n_checkpoints > 0) Copy(segment, blocks, move);
  s.taken_in = move.to;
  return move;
}

// Copies are made at ends of blocks. The state takes in no more than that in this pass, so that the
// copy can be made when the pass has run. The next pass takes in the rest.
void States::Copy(const Segment& segment, std::span<const std::int32_t> blocks,
                  StateMove& move) noexcept {
  Sequence& s = sequences_[Index(segment.seq)];
  const int block = move.to / tensor::kKvBlock;
  const Pos at = block * tensor::kKvBlock, end = segment.first_position + segment.n_rows;
  if (at > move.from && end - at <= shape_.rows) {
    const std::int32_t owner = blocks[static_cast<std::size_t>(block - 1)];
    if (checkpoints_.Of(owner) == kNone) move.checkpoint = checkpoints_.Attach(segment.seq, owner);
  }
  if (move.checkpoint != kNone) move.to = at;
  const bool due = move.checkpoint != kNone && (at == s.branch || at - s.stays >= shape_.interval);
  if (!due && !segment.ends_prompt) return;
  checkpoints_.Stay(segment.seq);
  s.stays = at;
}

int States::Truncate(SeqId seq, int length, std::span<const std::int32_t> blocks) noexcept {
  if (none()) return length;
  Sequence& s = sequences_[Index(seq)];
  if (s.taken_in > length) {
    int n = length / tensor::kKvBlock;
    while (n > 0 && checkpoints_.Of(blocks[static_cast<std::size_t>(n - 1)]) == kNone) --n;
    s.taken_in = length = n * tensor::kKvBlock;
    SetSource(s, n == 0 ? kNone : checkpoints_.Of(blocks[static_cast<std::size_t>(n - 1)]));
  }
  s.stays = std::min(s.stays, length);
  if (length == 0) s.branch = 0, checkpoints_.Stay(seq);
  return length;
}

void States::Continue(SeqId seq, std::int32_t block, Pos at) noexcept {
  if (none()) return;
  Sequence& s = sequences_[Index(seq)];
  checkpoints_.Stay(seq);
  SetSource(s, checkpoints_.Of(block));
  s.taken_in = s.stays = at;
}

bool States::Park(SeqId seq, std::int32_t tail) noexcept {
  Sequence& s = sequences_[Index(seq)];
  if (s.source != kNone) return false;
  s.tail = tail, s.parked = s.taken_in, s.parked_stays = s.stays;
  s.parked_since = ++n_parked_;
  return true;
}

SeqId States::ParkedBehind(std::int32_t tail) const noexcept {
  const auto found = std::find_if(sequences_.begin(), sequences_.end(),
                                  [tail](const Sequence& s) { return s.tail == tail; });
  return found == sequences_.end() ? kNone : static_cast<SeqId>(found - sequences_.begin());
}

void States::Unpark(SeqId seq) noexcept {
  if (none()) return;
  Sequence& s = sequences_[Index(seq)];
  SetSource(s, kNone);
  checkpoints_.Stay(seq);
  s.taken_in = s.parked, s.stays = s.parked_stays;
  Forget(s);
}

void States::Detach(std::int32_t block) noexcept {
  checkpoints_.Detach(block);
  for (Sequence& s : sequences_)
    if (s.tail == block) Forget(s);
}

void States::SetSource(Sequence& s, std::int32_t place) noexcept {
  if (place != kNone) checkpoints_.Hold(place);
  if (s.source != kNone) checkpoints_.Release(s.source);
  s.source = place;
}

}  // namespace foretoken::kv
