// SPDX-License-Identifier: Apache-2.0
// base/index_table.h: finds items of a list elsewhere: from a hash to the item's number.
//
// A hash table with open addressing in one piece of memory, so that its bytes are known exactly.
// Items that clients or files choose need seeded hashes (base/seeded_hash.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace foretoken {

// Allocator: of any type.
template <typename Allocator = std::allocator<std::byte>>
class BasicIndexTable {
 public:
  static constexpr std::int32_t kNone = -1;

  // The number with this hash for which same(number) is true, or kNone.
  template <typename Same>
  std::int32_t Find(std::uint64_t hash, const Same& same) const {
    if (slots_.empty()) return kNone;
    for (std::size_t i = hash & mask();; i = (i + 1) & mask()) {
      if (slots_[i].number == kNone) return kNone;
      if (slots_[i].tag == Tag(hash) && same(slots_[i].number)) return slots_[i].number;
    }
  }

  // REQUIRES: Find gives kNone. hash_of(number) must be the hash of an earlier insertion; the table
  // calls it when it grows.
  template <typename HashOf>
  void Insert(std::uint64_t hash, std::int32_t number, const HashOf& hash_of) {
    if (2 * (n_ + 1) > slots_.size()) Grow(hash_of);
    Put(hash, number);
    ++n_;
  }

  void Clear() noexcept { Slots().swap(slots_), n_ = 0; }
  std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

 private:
  struct Slot {
    std::uint32_t tag = 0;
    std::int32_t number = kNone;
  };
  using Slots =
      std::vector<Slot, typename std::allocator_traits<Allocator>::template rebind_alloc<Slot>>;
  static std::uint32_t Tag(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }
  std::size_t mask() const { return slots_.size() - 1; }

  void Put(std::uint64_t hash, std::int32_t number) {
    std::size_t i = hash & mask();
    while (slots_[i].number != kNone) i = (i + 1) & mask();
    slots_[i] = {Tag(hash), number};
  }

  template <typename HashOf>
  void Grow(const HashOf& hash_of) {
    constexpr std::size_t kLeastSlots = 64;
    Slots old(slots_.empty() ? kLeastSlots : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.number != kNone) Put(hash_of(slot.number), slot.number);
  }

  Slots slots_;  // a power of two, or none
  std::size_t n_ = 0;
};
using IndexTable = BasicIndexTable<>;

}  // namespace foretoken
