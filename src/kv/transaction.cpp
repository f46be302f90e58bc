// SPDX-License-Identifier: Apache-2.0
#include "kv/transaction.h"

#include "base/check.h"

namespace foretoken::kv {

Transaction::Transaction(BlockTables& tables, std::span<Segment> segments) noexcept
    : tables_(tables), segments_(segments) {
  for (Segment& s : segments) {
    FORETOKEN_CHECK(s.first_position == tables_.length(s.seq));
    tables_.Reserve(s.seq, s.n_rows);
    s.blocks = tables_.Blocks(s.seq);
    s.window_blocks = tables_.WindowBlocksOf(s.seq);
    s.rows_of = tables_.sequences_[s.seq].rows_of;
    s.window_rows_of = tables_.sequences_[s.seq].window_rows_of;
    s.state = tables_.states_.Move(s, s.blocks);
  }
  for (const Segment& s : segments) tables_.ReleaseRows(tables_.sequences_[s.seq]);
}

Transaction::~Transaction() {
  if (!open_) return;
  for (const Segment& s : segments_) tables_.Truncate(s.seq, tables_.length(s.seq));
}

void Transaction::Commit(std::span<const int> kept) noexcept {
  FORETOKEN_CHECK(open_ && kept.size() == segments_.size());
  open_ = false;
  for (std::size_t i = 0; i < segments_.size(); ++i) {
    FORETOKEN_CHECK(kept[i] >= 0 && kept[i] <= segments_[i].n_rows);
    tables_.Append(segments_[i].seq, kept[i]);
  }
}

}  // namespace foretoken::kv
