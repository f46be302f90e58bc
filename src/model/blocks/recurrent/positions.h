// SPDX-License-Identifier: Apache-2.0
// model/blocks/recurrent/positions.h: which positions and heads a recurrent block computes together.
#pragma once

#include <algorithm>
#include <span>

#include "base/check.h"
#include "kv/block_tables.h"
#include "kv/segment.h"
#include "model/blocks/phase.h"

namespace foretoken::model {

// Some consecutive positions of a sequence. The state takes in the first n_kept of them.
struct Positions {
  Pos first = 0;
  int n = 0, n_kept = 0;
  int n_silent = 0;  // so many lie before the rows of the pass: nobody wants their results
  int row = 0;       // the row of the first other one

  int n_rows() const { return n - n_silent; }
};

// Calls use(positions) for all that a pass computes of a sequence: those that its state takes in, then
// the others, all of these at once, because they change a copy that lasts for one call. REQUIRES: no
// more than kMostPositions of them; kv::BlockTables sees to that.
template <typename Use>
void ForEachPositions(const kv::Segment& segment, Use&& use) {
  static_assert(kMostPositions >= kv::TablesShape::kRollback);
  const Pos end = segment.first_position + segment.n_rows, kept_end = segment.state.to;
  for (Positions p = {.first = segment.state.from}; p.first < end; p.first += p.n) {
    p.n = end - p.first;
    if (p.n > kMostPositions) p.n = std::min(kMostPositions, kept_end - p.first);
    FORETOKEN_CHECK(p.n > 0);
    p.n_kept = std::clamp(kept_end - p.first, 0, p.n);
    p.n_silent = std::clamp(segment.first_position - p.first, 0, p.n);
    p.row = segment.row_begin + p.first + p.n_silent - segment.first_position;
    use(p);
  }
}

// A thread's share of the heads of all sequences of a pass. Calls use(segment, heads) for heads that
// follow each other and have the same group, KeyOf(head). What these share is computed once.
template <typename KeyOf, typename Use>
void ForEachHeads(const Workspace& space, const Pass& pass, int thread, std::span<const int> heads,
                  KeyOf&& key_of, Use&& use) {
  const int n = static_cast<int>(heads.size());
  if (n == 0) return;
  const auto share = space.pool.ShareOf(static_cast<int>(pass.segments.size()) * n, thread);
  for (int job = share.begin, many; job < share.end; job += many) {
    const int at = job % n, most = std::min(n - at, share.end - job);
    const auto group = heads.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(most));
    const auto next = std::find_if(group.begin(), group.end(),
                                   [&](int head) { return key_of(head) != key_of(group.front()); });
    many = static_cast<int>(next - group.begin());
    use(pass.segments[static_cast<std::size_t>(job / n)],
        group.first(static_cast<std::size_t>(many)));
  }
}

}  // namespace foretoken::model
