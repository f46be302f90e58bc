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
  if (segment.ends_prompt) return CopyPrompt(segment, blocks, move);
  Sequence& s = sequences_[Index(segment.seq)];
  const int block = move.to / tensor::kKvBlock;
  const Pos at = block * tensor::kKvBlock, end = segment.first_position + segment.n_rows;
  if (at > move.from && end - at <= shape_.rows) {
    const std::int32_t owner = blocks[static_cast<std::size_t>(block - 1)];
    if (checkpoints_.Of(owner) == kNone)
      move.checkpoint = checkpoints_.Attach(segment.seq, owner, {.first = at, .last = at});
  }
  if (move.checkpoint == kNone) return;
  move.to = at;
  if (at != s.branch && at - s.stays < shape_.interval) return;
  checkpoints_.Stay(segment.seq);
  s.stays = at;
}

// Templates write the last tokens of a prompt in another way once the answer is there, so the copy
// reaches a few positions before the end, too. It belongs to the block of the prompt's last position.
void States::CopyPrompt(const Segment& segment, std::span<const std::int32_t> blocks,
                        StateMove& move) noexcept {
  Sequence& s = sequences_[Index(segment.seq)];
  const Pos prompt = segment.first_position + segment.n_certain,
            end = segment.first_position + segment.n_rows;
  s.prompt = prompt;
  const Pos at = std::max({move.from, prompt - kCopiedInputs, end - shape_.rows});
  if (prompt == 0 || at > prompt) return;
  const std::int32_t owner = blocks[static_cast<std::size_t>((prompt - 1) / tensor::kKvBlock)];
  checkpoints_.Detach(owner);  // the end of an earlier prompt of this text
  checkpoints_.GiveUp(checkpoints_.Moving(segment.seq));
  checkpoints_.Stay(segment.seq);
  move.checkpoint = checkpoints_.Attach(segment.seq, owner, {.first = at, .last = prompt});
  if (move.checkpoint == kNone) return;
  move.to = at;
  checkpoints_.GiveUp(std::exchange(s.copy, checkpoints_.NameOf(move.checkpoint)));
  checkpoints_.Stay(segment.seq);
  s.stays = at;
}

int States::Truncate(SeqId seq, int length, std::span<const std::int32_t> blocks) noexcept {
  if (none()) return length;
  Sequence& s = sequences_[Index(seq)];
  if (s.taken_in > length) {
    int n = length / tensor::kKvBlock;
    while (n > 0 && !Known(blocks[static_cast<std::size_t>(n - 1)])) --n;
    length = n * tensor::kKvBlock;
    SetSource(s, n == 0 ? kNone : checkpoints_.Of(blocks[static_cast<std::size_t>(n - 1)]));
    s.taken_in = n == 0 ? 0 : checkpoints_.reach(s.source).first;
  }
  const auto n_full = static_cast<std::size_t>(length / tensor::kKvBlock);
  if (length % tensor::kKvBlock != 0 && n_full < blocks.size())
    checkpoints_.Cut(blocks[n_full], length);
  s.stays = std::min(s.stays, length);
  if (s.prompt > length) s.prompt = 0;
  if (length == 0) s.branch = 0, s.copy = {}, checkpoints_.Stay(seq);
  return length;
}

void States::Continue(SeqId seq, std::int32_t place, Pos at) noexcept {
  if (none()) return;
  Sequence& s = sequences_[Index(seq)];
  checkpoints_.Stay(seq);
  SetSource(s, place);
  checkpoints_.Use(place);
  const auto [first, last] = checkpoints_.reach(place);
  s.copy = first < last ? checkpoints_.NameOf(place) : Checkpoints::Name{};  // of a prompt's end
  s.taken_in = first;
  s.stays = at;
}

// The copy that has moved along is of use only if another sequence takes the state's place.
bool States::Park(SeqId seq, std::int32_t tail, Pos at) noexcept {
  Sequence& s = sequences_[Index(seq)];
  if (s.source != kNone) return false;
  s.tail = tail;
  s.line = {.taken_in = s.taken_in,
            .stays = s.stays,
            .prompt = s.prompt > 0 ? s.prompt : at,
            .end = at,
            .copy = s.copy};
  s.parked_since = ++n_parked_;
  checkpoints_.GiveUp(checkpoints_.Moving(seq));
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
  s.taken_in = s.line.taken_in, s.stays = s.line.stays, s.copy = s.line.copy;
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
