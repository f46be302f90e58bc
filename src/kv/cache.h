// SPDX-License-Identifier: Apache-2.0
// kv/cache.h: keys and values of the positions a model has processed, for several sequences.
//
// Memory is taken in blocks of 32 positions from one pool that is reserved at construction, so its
// bound is known before the first token; a sequence holds a table of block ids.
//
// Sequences whose texts begin alike may hold the same blocks: Publish makes a sequence's full
// committed blocks known by their tokens, Share gives them to another one. Such blocks are only
// read. Those that no sequence holds any more are *idle*: still known, and taken, the longest idle
// first, where no block is free.
//
// Rows of a pass are
// *pending* until Commit: nobody but that pass reads them, and a Transaction that ends without
// Commit gives everything back. After any pattern of commits and rollbacks the committed part of
// the cache is bit for bit what decoding the kept tokens one by one would have written (rows are
// written by position, never moved).
//
// Owned and called by one thread; kernels write and read rows of a running pass from the pool's
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "foretoken/result.h"
#include "kv/prefix_index.h"
#include "tensor/block_layout.h"

namespace foretoken::kv {

struct CacheShape {
  int n_layers = 0, n_kv_heads = 0, head_dim = 0;
  tensor::KvType k_type = tensor::KvType::kF16, v_type = tensor::KvType::kF16;
  int n_sequences = 1;
  int max_positions = 0;  // per sequence
  int n_positions = 0;    // of the pool; 0: max_positions for each sequence
};

class Transaction;

class Cache {
 public:
  // Errors: kUnsupported (a head size that the cache type cannot hold).
  [[nodiscard]] static Result<Cache> Create(const CacheShape& shape);
  // Bytes that Create would reserve.
  static std::size_t Bytes(const CacheShape& shape);

  const CacheShape& shape() const { return shape_; }
  int length(SeqId seq) const { return sequences_[seq].length; }  // committed positions
  int room(SeqId seq) const { return shape_.max_positions - length(seq); }

  // Forgets positions from `length` on (<= length(seq)); blocks that no position needs are let go.
  // REQUIRES: no published block is cut in two: `length` is a multiple of 32 or behind them.
  void Truncate(SeqId seq, int length) noexcept;

  // The sequence's full blocks can be shared from now on; one that is already known by the same
  // text takes the place of its own, which holds the same bits. `text`: the tokens of its committed
  // positions, as many as are known.
  void Publish(SeqId seq, std::span<const Token> text) noexcept;
  // Goes on with published blocks that hold `text` (from the sequence's first position on), and
  // returns how many positions that adds. Nothing where the sequence's own are not all published
  // and full. At most text.size() positions, in full blocks.
  int Share(SeqId seq, std::span<const Token> text) noexcept;
  // Blocks that Share could add to a sequence without any, and that other sequences hold.
  int SharedBlocks(std::span<const Token> text) const noexcept;

  // For the forward pass. Where a layer's head keeps its blocks, and which blocks a sequence has,
  // pending ones included.
  struct HeadView {
    std::byte* k;
    std::byte* v;
    std::size_t k_stride, v_stride;  // bytes from one block id to the next
  };
  HeadView Head(int layer, int head) noexcept;
  std::span<const std::int32_t> Blocks(SeqId seq) const noexcept { return sequences_[seq].blocks; }

  // What a pass may take: REQUIRES of a Transaction that this holds for all its sequences together.
  int n_available_blocks() const { return n_free_blocks() + n_idle_; }
  // Blocks that a sequence lacks for n more rows.
  int MissingBlocks(SeqId seq, int n_rows) const noexcept;
  static int BlocksFor(int positions) noexcept;

  int n_blocks() const { return n_blocks_; }
  int n_free_blocks() const { return static_cast<int>(free_.size()); }
  int n_idle_blocks() const { return n_idle_; }

 private:
  friend class Transaction;
  struct Sequence {
    int length = 0;
    std::vector<std::int32_t>
        blocks;           // ids, in order of position; capacity reserved for max_positions
    int n_published = 0;  // of them, from the first on
  };
  struct Block {
    int n_users = 0;                            // sequences that hold it
    std::int32_t older = kNone, newer = kNone;  // idle ones: neighbours by the time they became so
  };
  static constexpr std::int32_t kNone = PrefixIndex::kNone;

  void Reserve(SeqId seq, int n_rows) noexcept;
  Block& At(std::int32_t block) { return blocks_[static_cast<std::size_t>(block)]; }
  std::int32_t Take() noexcept;
  void Hold(std::int32_t block) noexcept;
  void Release(std::int32_t block) noexcept;
  void LeaveIdle(std::int32_t block) noexcept;
  std::int32_t FindNext(std::int32_t before, std::span<const Token> text, int at) const noexcept;

  CacheShape shape_;
  int n_blocks_ = 0;
  std::size_t k_block_bytes_ = 0, v_block_bytes_ = 0;
  // [n_layers, n_kv_heads, n_blocks, block bytes]: the blocks that one head reads in a pass lie
  // together, as the hardware's prefetcher likes it.
  AlignedBytes k_, v_;
  std::vector<Sequence> sequences_;
  std::vector<Block> blocks_;
  std::vector<std::int32_t> free_;  // a stack, lowest id on top
  std::int32_t oldest_idle_ = kNone, newest_idle_ = kNone;
  int n_idle_ = 0;
  // A sequence that holds a block holds those before it, and lets go of it first: so no block
  // becomes idle after one that it follows, and the oldest idle one is followed by none.
  PrefixIndex index_;
};

// Rows of one pass. Begin with the rows each sequence is about to write; then Commit how many of
// them stay.
class Transaction {
 public:
  struct Rows {
    SeqId seq = 0;
    int n = 0;  // <= room(seq)
  };
  // `rows` must outlive the transaction. A sequence appears once.
  Transaction(Cache& cache, std::span<const Rows> rows) noexcept;
  ~Transaction();  // without Commit: rollback
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // kept[i] of rows[i].n rows become committed, the rest vanish.
  void Commit(std::span<const int> kept) noexcept;

 private:
  Cache& cache_;
  std::span<const Rows> rows_;
  bool open_ = true;
};

}  // namespace foretoken::kv
