// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/encode/merge_rules.h: the pieces of a vocabulary and the ranked merges between
// them (tokenizer.ggml.merges).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/seeded_hash.h"
#include "text/tokenizer/encode/merge.h"
#include "text/tokenizer/encode/string_table.h"
#include "text/tokenizer/vocabulary.h"

namespace foretoken::text {

// (left piece, right piece) to their merge; open addressing, at most half full.
class MergeTable {
 public:
  explicit MergeTable(std::size_t capacity) {
    std::size_t n_slots = 16;
    while (n_slots < capacity * 2) n_slots *= 2;
    slots_.resize(n_slots);
  }

  // Keeps the first merge of a pair.
  void Insert(std::int32_t left, std::int32_t right, Merge merge) {
    Slot& slot = slots_[Probe(Key(left, right))];
    if (slot.merge.rank == kNoMerge) slot = {Key(left, right), merge};
  }

  Merge Find(std::int32_t left, std::int32_t right) const {
    return slots_[Probe(Key(left, right))].merge;
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    Merge merge = {kNoMerge, 0};
  };

  static std::uint64_t Key(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }

  std::size_t Probe(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = SeededHashOf(key) & mask;; i = (i + 1) & mask) {
      if (slots_[i].merge.rank == kNoMerge || slots_[i].key == key) return i;
    }
  }

  std::vector<Slot> slots_;
};

// The two pieces of a line of tokenizer.ggml.merges, both empty if it is not "left right".
struct MergeLine {
  explicit MergeLine(std::string_view line) {
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == line.size()) return;
    left = line.substr(0, space);
    right = line.substr(space + 1);
  }
  std::string_view left, right;
};

// Immutable once made. A piece that is in the vocabulary has its token's number. Merges may pass
// through other pieces, which have numbers past the vocabulary's end.
class MergeRules {
 public:
  // Lines that are not "left right" count for nothing.
  MergeRules(const Vocabulary& vocabulary, const std::vector<std::string>& merges)
      : size_(vocabulary.size()), merges_(merges.size()) {
    for (Token token = 0; token < vocabulary.size(); ++token) {
      const std::string& text = vocabulary.texts[token];
      if (vocabulary.IsText(token) && !text.empty()) pieces_.Insert(text, token);
    }
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      AddMerge(merges[rank], static_cast<std::int32_t>(rank));
    }
  }

  // The number of a piece, or StringTable::kAbsent.
  std::int32_t Find(std::string_view text) const { return pieces_.Find(text); }

  // The number of a piece, which is made if it is absent.
  std::int32_t Intern(std::string_view text) {
    const std::int32_t found = pieces_.Find(text);
    if (found != StringTable::kAbsent) return found;
    outsiders_.emplace_back(text);
    const auto number = size_ + static_cast<std::int32_t>(outsiders_.size()) - 1;
    pieces_.Insert(outsiders_.back(), number);
    return number;
  }

  Merge FindMerge(const Symbol& left, const Symbol& right) const {
    return merges_.Find(left.piece, right.piece);
  }

 private:
  void AddMerge(std::string_view line, std::int32_t rank) {
    const MergeLine merge(line);
    if (merge.left.empty()) return;
    const std::int32_t left = Intern(merge.left), right = Intern(merge.right);
    merges_.Insert(left, right, {rank, Intern(std::string(merge.left).append(merge.right))});
  }

  std::int32_t size_;
  StringTable pieces_;                 // text to piece
  std::deque<std::string> outsiders_;  // texts of the pieces that are no tokens
  MergeTable merges_;
};

}  // namespace foretoken::text
