// SPDX-License-Identifier: Apache-2.0
// kv/cache.h: keys and values of the positions a model has processed, for several sequences.
//
// Memory is taken in blocks of 32 positions from one pool that is reserved at construction, so its
// bound is known before the first token; a sequence holds a table of block ids. Rows of a pass are
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
#include "tensor/block_layout.h"

namespace foretoken::kv {

struct CacheShape {
  int n_layers = 0, n_kv_heads = 0, head_dim = 0;
  tensor::KvType k_type = tensor::KvType::kF16, v_type = tensor::KvType::kF16;
  int n_sequences = 1;
  int max_positions = 0;  // per sequence
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

  // Forgets positions from `length` on (<= length(seq)); blocks that no position needs go back to
  // the pool.
  void Truncate(SeqId seq, int length) noexcept;

  // For the forward pass. Where a layer's head keeps its blocks, and which blocks a sequence has,
  // pending ones included.
  struct HeadView {
    std::byte* k;
    std::byte* v;
    std::size_t k_stride, v_stride;  // bytes from one block id to the next
  };
  HeadView Head(int layer, int head) noexcept;
  std::span<const std::int32_t> Blocks(SeqId seq) const noexcept { return sequences_[seq].blocks; }

  int n_free_blocks() const { return static_cast<int>(free_.size()); }

 private:
  friend class Transaction;
  struct Sequence {
    int length = 0;
    std::vector<std::int32_t>
        blocks;  // ids, in order of position; capacity reserved for max_positions
  };

  void Reserve(SeqId seq, int n_rows) noexcept;

  CacheShape shape_;
  int n_blocks_ = 0;
  std::size_t k_block_bytes_ = 0, v_block_bytes_ = 0;
  // [n_layers, n_kv_heads, n_blocks, block bytes]: the blocks that one head reads in a pass lie
  // together, as the hardware's prefetcher likes it.
  AlignedBytes k_, v_;
  std::vector<Sequence> sequences_;
  std::vector<std::int32_t> free_;  // a stack, lowest id on top
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
