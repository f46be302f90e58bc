// SPDX-License-Identifier: Apache-2.0
// kv/states.h: which positions the recurrent state of each sequence has taken in, and from where it
// can be continued.
//
// What a state has taken in cannot be taken back. So copies of it are made while a text is read
// (kv/checkpoints.h): at the last full block of each pass, where the copy before it is given up
// unless it is worth keeping. Copies stay where known texts part, every so many positions, and at the
// end of a prompt. That one reaches the prompt's last positions, in a full block or not: what comes
// behind, a client may send back in other words.
//
// Where a text ends, the sequence's own state is *parked*: it continues that text, from its last position
// on, until the sequence begins with another one.
//
// One thread owns and calls the states.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "kv/checkpoints.h"
#include "kv/segment.h"

namespace foretoken::kv {

class States {
 public:
  struct Shape {
    int n_sequences = 1, n_blocks = 0;
    // Positions that a state can be behind the newest row of a pass; 0: the network has no states.
    int rows = 0;
    int n_checkpoints = 0;
    int interval = 0;  // positions from one copy that stays to the next
  };
  explicit States(const Shape& shape);

  bool none() const { return shape_.rows == 0; }
  // Whether texts can be continued from copies, so that it is of use to know them.
  bool shared() const { return none() || shape_.n_checkpoints > 0; }
  // Whether a sequence can begin behind the block.
  bool Known(std::int32_t block) const noexcept {
    if (none()) return true;
    const std::int32_t place = checkpoints_.Of(block);
    return place >= 0 && checkpoints_.reach(place).last % tensor::kKvBlock == 0;
  }

  // Whether the block has a copy.
  bool Copied(std::int32_t block) const noexcept { return checkpoints_.Of(block) >= 0; }

  // What the pass does to the state. blocks: of the sequence, those of the segment's rows included.
  StateMove Move(const Segment& segment, std::span<const std::int32_t> blocks) noexcept;

  // Forgets positions from `length` on. Returns how many remain: fewer than `length` where the state
  // has taken in one that is forgotten.
  int Truncate(SeqId seq, int length, std::span<const std::int32_t> blocks) noexcept;
  // The sequence goes on at position `at`, which the copy in the place reaches.
  void Continue(SeqId seq, std::int32_t place, Pos at) noexcept;
  // The sequence's text has ended at position `at`, and its last positions are in `tail`: a later text
  // of the same sequence may go on behind them. Returns false where the state was not computed yet.
  // REQUIRES: Truncate follows.
  bool Park(SeqId seq, std::int32_t tail, Pos at) noexcept;
  // The sequence whose state goes on behind the tail, or kNone.
  SeqId ParkedBehind(std::int32_t tail) const noexcept;
  // When the sequence's state was parked: a later one has a greater number. 0: it is not.
  std::int64_t parked_since(SeqId seq) const noexcept {
    return sequences_[Index(seq)].parked_since;
  }
  // The block that the sequence's state is parked behind, or kNone.
  std::int32_t parked(SeqId seq) const noexcept { return sequences_[Index(seq)].tail; }
  // Where the text ended whose state is parked, and where that text's prompt did.
  Pos parked_end(SeqId seq) const noexcept { return sequences_[Index(seq)].line.end; }
  Pos parked_prompt(SeqId seq) const noexcept { return sequences_[Index(seq)].line.prompt; }
  // The sequence goes on with its parked state.
  void Unpark(SeqId seq) noexcept;
  // The parked state is given up.
  void Forget(SeqId seq) noexcept { Forget(sequences_[Index(seq)]); }

  // Known texts part at this position, so a copy of the state is of use there.
  void SetBranch(SeqId seq, Pos at) noexcept { sequences_[Index(seq)].branch = none() ? 0 : at; }
  Pos branch(SeqId seq) const noexcept { return sequences_[Index(seq)].branch; }

  // As of Checkpoints.
  void Replace(std::int32_t own, std::int32_t known) noexcept { checkpoints_.Replace(own, known); }
  void Detach(std::int32_t block) noexcept;
  const Checkpoints& checkpoints() const { return checkpoints_; }
  Checkpoints& checkpoints() { return checkpoints_; }

 private:
  struct Sequence {
    Pos taken_in = 0;                          // the positions before
    std::int32_t source = Checkpoints::kNone;  // a copy that the next pass begins with
    Pos stays = 0;                             // the newest copy that stays was made here
    Pos branch = 0;                            // a copy is wanted here
    Pos prompt = 0;                            // its prompt ended here; 0: it has not ended
    Checkpoints::Name copy = {};               // of its prompt's end, or that it began with
    std::int32_t tail = Checkpoints::kNone;    // its state is parked behind this block,
    struct Line {                              // with these values of the text that ended
      Pos taken_in = 0, stays = 0, prompt = 0, end = 0;
      Checkpoints::Name copy = {};
    } line = {};
    std::int64_t parked_since = 0;
  };
  static std::size_t Index(SeqId seq) { return static_cast<std::size_t>(seq); }
  void Copy(const Segment& segment, std::span<const std::int32_t> blocks, StateMove& move) noexcept;
  void CopyPrompt(const Segment& segment, std::span<const std::int32_t> blocks,
                  StateMove& move) noexcept;
  void SetSource(Sequence& s, std::int32_t place) noexcept;

  const Shape shape_;
  static void Forget(Sequence& s) noexcept { s.tail = Checkpoints::kNone, s.parked_since = 0; }

  std::vector<Sequence> sequences_;
  std::int64_t n_parked_ = 0;  // so far
  Checkpoints checkpoints_;
};

}  // namespace foretoken::kv
