// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/encode/merge.h: the loop that three tokenizer families share: merge the best pair of neighbours
// until no pair can be merged.
//
// The best pair has the lowest rank; of equal ones the leftmost. A heap holds the candidates. An
// entry is stale if one of its two symbols has grown or disappeared meanwhile, which its recorded
// size shows. O(n log n) for n symbols.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/work_count.h"

namespace foretoken::text {

struct Symbol {
  std::uint32_t begin;  // first byte
  std::uint32_t size;   // bytes; 0 once merged into its left neighbour
  std::int32_t prev;    // -1 at the start
  std::int32_t next;    // -1 at the end
  std::int32_t piece;   // the symbol's number; its meaning is the caller's
};

struct Merge {
  std::int32_t rank;  // lower goes first; never negative
  std::int32_t piece;
};
inline constexpr std::int32_t kNoMerge = -1;

// Scratch memory of one thread, reused from word to word.
class PairMerger {
 public:
  void Clear() { symbols_.clear(); }
  void Add(std::uint32_t size, std::int32_t piece) {
    CountWork();
    const auto index = static_cast<std::int32_t>(symbols_.size());
    const std::uint32_t begin = symbols_.empty() ? 0 : symbols_.back().begin + symbols_.back().size;
    if (index > 0) symbols_.back().next = index;
    symbols_.push_back({begin, size, index - 1, -1, piece});
  }

  // find(left, right) gives the Merge of two neighbours, with rank kNoMerge if there is none.
  template <typename Find>
  void Run(const Find& find) {
    heap_.clear();
    for (std::size_t i = 1; i < symbols_.size(); ++i)
      Consider(find, static_cast<std::int32_t>(i) - 1);
    std::make_heap(heap_.begin(), heap_.end());
    while (!heap_.empty()) {
      CountWork();
      const Candidate best = heap_.front();
      std::pop_heap(heap_.begin(), heap_.end());
      heap_.pop_back();
      Symbol& left = symbols_[best.left];
      if (left.size == 0 || left.next < 0) continue;
      Symbol& right = symbols_[left.next];
      if (left.next != best.right || left.size + right.size != best.size) continue;
      left.size += right.size;
      left.piece = best.piece;
      left.next = right.next;
      if (right.next >= 0) symbols_[right.next].prev = best.left;
      right.size = 0;
      if (left.prev >= 0 && Consider(find, left.prev)) std::push_heap(heap_.begin(), heap_.end());
      if (left.next >= 0 && Consider(find, best.left)) std::push_heap(heap_.begin(), heap_.end());
    }
  }

  // Calls visit(symbol) for the remaining symbols, from left to right.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (std::int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[i].next)
      visit(symbols_[i]);
  }

  std::size_t n_symbols() const { return symbols_.size(); }

 private:
  struct Candidate {
    std::int32_t rank;
    std::int32_t left;
    std::int32_t right;
    std::uint32_t size;
    std::int32_t piece;
    bool operator<(const Candidate& other) const {  // the heap's top is its largest element
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  // Appends the pair that starts at `left`, if it can be merged. Inline, as StringTable::Find is.
  template <typename Find>
  [[gnu::always_inline]] bool Consider(const Find& find, std::int32_t left) {
    const Symbol& a = symbols_[left];
    const Symbol& b = symbols_[a.next];
    const Merge merge = find(a, b);
    if (merge.rank == kNoMerge) return false;
    heap_.push_back({merge.rank, left, a.next, a.size + b.size, merge.piece});
    return true;
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace foretoken::text
