// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/encode/string_table.h"

#include <algorithm>

namespace foretoken::text {

bool StringTable::Insert(std::string_view key, std::int32_t value) {
  if ((size_ + 1) * 2 > slots_.size()) Grow();
  const std::uint64_t hash = SeededHashOf(key);
  Slot& slot = slots_[Probe(key, hash)];
  if (slot.value != kAbsent) return false;
  slot = {key.data(), static_cast<std::uint32_t>(key.size()), value, hash};
  longest_ = std::max(longest_, key.size());
  ++size_;
  return true;
}

void StringTable::Grow() {
  std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.value != kAbsent)
      slots_[Probe(std::string_view(slot.data, slot.size), slot.hash)] = slot;
  }
}

}  // namespace foretoken::text
