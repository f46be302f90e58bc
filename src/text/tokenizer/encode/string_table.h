// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/encode/string_table.h: maps short strings to numbers. A tokenizer looks up every pair of symbols
// that it considers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/seeded_hash.h"

namespace foretoken::text {

// Open addressing, linear probing, at most half full. It does not own its keys, which must outlive
// the table.
class StringTable {
 public:
  static constexpr std::int32_t kAbsent = -1;

  // Keeps the first value of a key; returns whether the key was new.
  bool Insert(std::string_view key, std::int32_t value);

  // Inline, as most of the work of an encoder is here, and -O1 makes a call of what is called twice.
  [[gnu::always_inline]] std::int32_t Find(std::string_view key) const noexcept {
    if (key.size() > longest_ || size_ == 0) return kAbsent;
    return slots_[Probe(key, SeededHashOf(key))].value;
  }

 private:
  struct Slot {
    const char* data = nullptr;
    std::uint32_t size = 0;
    std::int32_t value = kAbsent;
    std::uint64_t hash = 0;
  };

  [[gnu::always_inline]] std::size_t Probe(std::string_view key,
                                           std::uint64_t hash) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
      const Slot& slot = slots_[i];
      if (slot.value == kAbsent) return i;
      if (slot.hash == hash && std::string_view(slot.data, slot.size) == key) return i;
    }
  }

  void Grow();

  std::vector<Slot> slots_;  // [a power of two]
  std::size_t size_ = 0;
  std::size_t longest_ = 0;
};

}  // namespace foretoken::text
