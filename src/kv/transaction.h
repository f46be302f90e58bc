// SPDX-License-Identifier: Apache-2.0
// kv/transaction.h: the positions of one pass, pending until it is known which of them stay.
#pragma once

#include <span>

#include "kv/block_tables.h"
#include "kv/segment.h"

namespace foretoken::kv {

// The constructor takes the blocks that the rows of the segments need and writes each sequence's
// blocks into its segment. Then the pass runs. Commit says how many rows of each segment stay.
//
// Nobody but that pass reads pending rows. Without Commit the destructor takes all of them back
// (rollback). Rows are written by position and never moved, so after any series of commits and
// rollbacks the committed positions hold, bit for bit, what decoding the kept tokens one by one
// would have written.
class Transaction {
 public:
  // `segments` must outlive the transaction. Each begins at the committed length of its sequence; a
  // sequence appears once. REQUIRES: n_rows <= room(seq), and the tables have enough blocks.
  Transaction(BlockTables& tables, std::span<Segment> segments) noexcept;
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // The first kept[i] of the n_rows rows of segments[i] become committed, the others vanish.
  void Commit(std::span<const int> kept) noexcept;

 private:
  BlockTables& tables_;
  std::span<const Segment> segments_;
  bool open_ = true;
};

}  // namespace foretoken::kv
