// SPDX-License-Identifier: Apache-2.0
// kv/block_tables.h: which blocks of a network's cache hold the positions of each sequence.
//
// The memory of a cache consists of blocks of 32 positions, known by their numbers. A runner owns
// that memory (model/memory/cache_memory.h); the tables only say which sequence holds which blocks. The
// number of blocks is fixed at construction, so the bound of the memory is known before the first
// token.
//
// Sequences with a shared prefix may hold the same blocks: Publish makes the full committed blocks
// of a sequence known by their tokens, and Share gives them to another sequence of the same salt.
// Such blocks are only read. A published block that no sequence holds any more is *idle*: it is still known, and it
// is taken, the longest idle first, when no block is free.
//
// Where a text ends (End), its last positions fill no block. This *tail* is known as well, until one
// later text goes on behind it: that sequence takes the block for itself. So the next turn of a
// conversation reads only what is new.
//
// Layers that see a window of positions may have a memory of their own (kv/window_blocks.h). Then a
// sequence has a second list of blocks, which are dropped when no next position sees them, nor one
// after a rollback of kRollback positions.
//
// A file may keep what has no place in memory (kv/block_store.h).
//
// Recurrent layers have a state of each sequence in place of keys and values. The tables say which
// positions it takes in (kv/states.h). These cannot be taken back one by one: the sequence returns to
// a copy of the state that was made earlier, or to its beginning. A shared prefix ends where there is
// such a copy. Where that is within a block, the sequence gets a block of its own, and the runner copies
// the positions before (Segment::rows_of).
//
// One thread owns and calls the tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "foretoken/drafts.h"
#include "kv/block_store.h"
#include "kv/idle_blocks.h"
#include "kv/prefix_index.h"
#include "kv/segment.h"
#include "kv/states.h"
#include "kv/window_blocks.h"

namespace foretoken::kv {

struct TablesShape {
  int n_sequences = 1;
  int max_positions = 0;  // per sequence
  int n_positions = 0;    // of all sequences together; 0: max_positions for each sequence
  int window = 0;         // the largest of the network's windows; 0: nothing is dropped
  int pass_rows = 0;      // with a window: the most rows of a pass, of all sequences together
  // Positions that a recurrent state can be behind the newest row of a pass, which the runner keeps
  // the inputs of; 0: the network has no recurrent layers.
  int state_rows = 0;
  // With recurrent layers: copies of states that the runner has room for, and how many positions lie
  // between two that stay.
  int n_checkpoints = 0, checkpoint_tokens = 0;

  int n_blocks() const {
    return n_positions > 0 ? BlocksFor(n_positions) : BlocksFor(max_positions) * n_sequences;
  }
  // Blocks of the layers that see a window; 0: they use those of the other layers, because fewer
  // would not do.
  int n_window_blocks() const {
    if (window == 0) return 0;
    // What each sequence holds, the blocks at both ends of it, and as much again for known texts.
    const int held = BlocksFor(window + kRollback) + 3, known = SeenBlocks();
    const std::int64_t all = std::int64_t{n_sequences} * (held + known) + BlocksFor(pass_rows);
    return all < n_blocks() ? static_cast<int>(all) : 0;
  }
  // Blocks that the position after a full block sees, beside its own.
  int SeenBlocks() const { return BlocksFor(window - 1); }

  // A drafter takes back at most what it drafted.
  static constexpr int kRollback = kMaxDraft + 1;
};

class BlockTables {
 public:
  explicit BlockTables(const TablesShape& shape);

  const TablesShape& shape() const { return shape_; }
  int length(SeqId seq) const { return sequences_[seq].length; }  // committed positions
  int room(SeqId seq) const { return shape_.max_positions - length(seq); }

  // Forgets the positions from `length` on (<= length(seq)) and releases the blocks that no
  // position needs any more. Where the positions that the next one would see have been dropped, or a
  // recurrent state has taken in one that is forgotten, it forgets more: all, or in the second case as
  // many as bring the sequence back to the newest copy of its state. Returns the new length. REQUIRES:
  // no published block is cut: `length` is a multiple of 32 or lies behind the published blocks.
  int Truncate(SeqId seq, int length) noexcept;

  // From now on the sequence's full blocks can be shared. Where a block with the same text is
  // already known, it replaces the sequence's own, which holds the same bits. `text`: the tokens of
  // the committed positions, as many as are known. salt: the same in all calls for a text. Nothing is
  // shared where there are recurrent layers and no copies of their states.
  void Publish(SeqId seq, std::span<const Token> text, SaltId salt = kNoSalt) noexcept;
  // The sequence's text has ended: its full blocks are published, its tail is known, and nothing is
  // held any more. As Publish otherwise.
  void End(SeqId seq, std::span<const Token> text, SaltId salt = kNoSalt) noexcept;
  // Appends published blocks that hold the next positions of `text` (which begins at the sequence's
  // first position), and a tail behind them, and returns how many positions that adds: at most
  // text.size() in all. It adds nothing unless the sequence's own blocks are all published and full.
  int Share(SeqId seq, std::span<const Token> text, SaltId salt = kNoSalt) noexcept;
  // From now on known blocks, and copies of states, whose place is needed go to the store, which must
  // outlive the tables, and Restore finds them there. REQUIRES: the tables are new, and no layers see a
  // window of a memory of their own.
  void Use(BlockStore& store);
  // Brings back from the store what Share would give the sequence next, if it were known here. It takes
  // the place of idle blocks, and is idle itself until Share.
  void Restore(SeqId seq, std::span<const Token> text, SaltId salt = kNoSalt) noexcept;
  // BlockStore::NameSalt, where there is a store.
  void NameSalt(SaltId salt, std::string_view text) {
    if (store_ != nullptr) store_->NameSalt(salt, text);
  }
  // Writes all known blocks and copies of states to the store.
  void KeepAll() noexcept;
  // What is known of a text, here or in the store: its first so many tokens, with so many blocks and
  // copies of states. REQUIRES of this and of what follows: there is a store.
  struct Known {
    int n_tokens = 0, n_blocks = 0, n_states = 0;
  };
  Known Gather(std::span<const Token> text, SaltId salt) noexcept;
  // Writes what the last Gather found, with nothing between. REQUIRES: the store has the same memory.
  void Save(BlockStore& to) noexcept;
  // Brings back all of the text that the file of one text has, as Restore does, and fills `text` with its
  // tokens as far as they came. REQUIRES: as Save; the capacity of `text` is the file's tokens.
  void Bring(BlockStore& from, SaltId salt, std::vector<Token>& text) noexcept;
  // Forgets the text, here and in the store, from its end to where a running text has it or another one
  // that is known goes on. Returns how many tokens that were here.
  int Drop(std::span<const Token> text, SaltId salt) noexcept;
  // How many blocks Share could add to an empty sequence, counting only blocks that other sequences
  // hold.
  int SharedBlocks(std::span<const Token> text, SaltId salt = kNoSalt) const noexcept;
  // The sequence whose recurrent state is of the newest text that `text` is a later turn of: it has most
  // in common with that one, and the whole prompt at least, but for a few tokens. kNoSequence: none.
  static constexpr SeqId kNoSequence = -1;
  SeqId SequenceOf(std::span<const Token> text, SaltId salt = kNoSalt) const noexcept;
  // When a text of the sequence ended that could go on there, as a number that grows; 0: none can.
  std::int64_t ended(SeqId seq) const noexcept { return states_.parked_since(seq); }
  // Rows up to where the sequence's text parts from a known one whose state was not copied there, or
  // else all that fit. A pass that ends there makes the copy for the next text.
  int RowsToBranch(SeqId seq) const noexcept {
    const int rows = states_.branch(seq) - length(seq);
    return rows > 0 ? rows : room(seq);
  }

  // The blocks of a sequence in order of position, pending ones included. The view stays valid; its
  // length is that of this moment.
  std::span<const std::int32_t> Blocks(SeqId seq) const noexcept { return sequences_[seq].blocks; }

  // The block that still has the positions of the sequence's last block, up to its next pass; -1: none.
  std::int32_t RowsOf(SeqId seq) const noexcept { return sequences_[seq].rows_of; }

  // Its blocks of the layers that see a window, with -1 for blocks that were dropped. Empty if these
  // have no memory of their own.
  std::span<const std::int32_t> WindowBlocksOf(SeqId seq) const noexcept {
    return sequences_[seq].window_blocks;
  }

  // Blocks that a pass may take. A Transaction REQUIRES that they suffice for all its sequences.
  int n_available_blocks() const { return n_free_blocks() + n_idle_blocks(); }
  // Blocks that a sequence lacks for n more rows.
  int MissingBlocks(SeqId seq, int n_rows) const noexcept;

  int n_blocks() const { return n_blocks_; }
  int n_free_blocks() const { return static_cast<int>(free_.size()); }
  int n_idle_blocks() const { return idle_.size(); }
  const WindowBlocks& window_blocks() const { return windows_; }
  const Checkpoints& checkpoints() const { return states_.checkpoints(); }

 private:
  friend class Transaction;
  static constexpr std::int32_t kNone = PrefixIndex::kNone;
  struct Sequence {
    int length = 0;
    // Numbers, in order of position. Capacity is reserved for max_positions.
    std::vector<std::int32_t> blocks;
    int n_published = 0;  // that many, counted from the first
    // As many as `blocks`, or none. Those before the first that is held are kNone.
    std::vector<std::int32_t> window_blocks;
    int first_held = 0;
    // What the first block of the next pass begins with (Segment); both are held.
    std::int32_t rows_of = kNone, window_rows_of = kNone;
  };

  void Reserve(SeqId seq, int n_rows) noexcept;
  void Append(SeqId seq, int n_rows) noexcept;  // of reserved rows; the other ones are released
  bool SeesWindow(const Sequence& s, int length) const noexcept;
  bool HasWindows() const { return windows_.n_blocks() > 0; }
  int& Users(std::int32_t block) { return n_users_[static_cast<std::size_t>(block)]; }
  std::int32_t Take() noexcept;
  void Hold(std::int32_t block) noexcept;
  void Release(std::int32_t block) noexcept;
  std::int32_t TakeWindow() noexcept;
  void ReleaseWindows(Sequence& s, int begin, int end) noexcept;
  void DropUnseen(Sequence& s) noexcept;
  void PublishWindow(Sequence& s, std::int32_t owner) noexcept;
  void Forget(std::int32_t block) noexcept;
  void KeepTail(SeqId seq, std::span<const Token> text, SaltId salt) noexcept;
  void TakeTail(Sequence& s, PrefixIndex::Tail tail) noexcept;
  struct Way {
    std::int64_t before = kNone;  // the last block so far, or PrefixIndex::BeginOf
    int n_blocks = 0;             // so far
    int n_held = 0;  // of these, how many at the end have a block of the layers with a window
  };
  struct Found {
    int n_sharable = 0, n_known = 0;  // the sharable ones are the first of the known ones
    std::int64_t last = kNone;        // of the known ones, or what stood before
    bool sees = false;                // a tail behind the last one would see its window
  };
  Found Find(Way way, std::span<const Token> text, bool held_only) const noexcept;
  // A copy of a state that a text can go on with.
  struct Copy {
    std::int32_t place = kNone;
    Pos at = 0;
    std::int32_t block = kNone;  // that has the positions before, where these end within a block
  };
  Copy FindCopy(SeqId seq, std::span<const Token> text, SaltId salt) const noexcept;
  Copy Reached(std::int32_t place, std::span<const Token> text, SaltId salt) const noexcept;
  bool CanCopyRows(SeqId seq, const Copy& copy) const noexcept;
  void CopyRows(Sequence& s, const Copy& copy) noexcept;
  void ReleaseRows(Sequence& s) noexcept;
  void HoldKnown(Sequence& s, int n_more) noexcept;
  int CommonWithParked(SeqId seq, std::span<const Token> text, SaltId salt) const noexcept;
  PrefixIndex::Tail FindTail(const Found& found, SeqId seq,
                             std::span<const Token> rest) const noexcept;
  // block_tables_store.cpp:
  void Keep(std::int32_t block) noexcept;
  void KeepState(std::int32_t place) noexcept;
  void WriteState(BlockStore& to, std::int32_t place) const noexcept;
  std::optional<BlockFile::Text> TextOf(std::int32_t block) const noexcept;
  std::optional<BlockKey> KeyOf(std::int64_t before) const noexcept;
  void Named(std::int32_t block) noexcept;
  struct Stored {
    int n_blocks = 0;            // full ones that follow the known ones
    std::int32_t more = kNone;   // a record of a block behind them
    std::int32_t state = kNone;  // a record of the state of that, or of the last full one
  };
  void RestoreBehind(std::size_t n_own, std::span<const Token> text, SaltId salt) noexcept;
  void FollowKnown(std::span<const Token> text, SaltId salt) const noexcept;
  void DropStored(std::span<const Token> text, SaltId salt) noexcept;
  Stored FindStored(std::span<const Token> text, SaltId salt) const noexcept;
  std::int32_t KnownLike(std::int64_t before, const BlockFile::Text& text) const noexcept;
  void RestoreKnownState(std::size_t n_own) noexcept;
  void LoadStored(const Stored& stored, SaltId salt) noexcept;
  void ReadTaken() noexcept;
  void LoadFound(int n, SaltId salt) noexcept;
  void Enter(std::int32_t block, std::int64_t before, std::int32_t record) noexcept;
  std::int32_t Load(std::int32_t record, std::int64_t before) noexcept;
  void LoadState(std::int32_t record, std::int32_t block) noexcept;
  std::int32_t FindNext(std::int64_t before, std::span<const Token> text, int at) const noexcept;
  static std::int64_t LastOf(std::span<const std::int32_t> blocks, SaltId salt) noexcept {
    return blocks.empty() ? PrefixIndex::BeginOf(salt) : blocks.back();
  }

  TablesShape shape_;
  int n_blocks_ = 0;
  std::vector<Sequence> sequences_;
  std::vector<int> n_users_;        // by block: sequences that hold it
  std::vector<std::int32_t> free_;  // a stack with the lowest number on top
  IdleBlocks idle_;
  WindowBlocks windows_;
  States states_;
  // A sequence that holds a block also holds the blocks before it, and releases it before them. So
  // no block becomes idle after a block that follows it, and nothing follows the oldest idle block.
  PrefixIndex index_;
  BlockStore* store_ = nullptr;
  BlockStore* source_ = nullptr;  // what comes back comes from there: store_, but for Bring
  std::vector<std::optional<BlockKey>> keys_;  // by block, of known ones; empty without a store
  mutable std::vector<BlockKey> found_;        // of the full blocks that the last FindStored found
  struct Taken {
    std::int32_t n = 0;  // in found_
    std::int32_t block = kNone, record = kNone;
  };
  std::vector<Taken> taken_;  // memory for what LoadFound reads
  // The blocks of the text that the last Find followed, with those that the sequence has already.
  // Capacity is reserved.
  mutable std::vector<std::int32_t> chain_;
};

}  // namespace foretoken::kv
