// SPDX-License-Identifier: Apache-2.0
// base/files/guarded_range.h: a mapping of a file in which a SIGBUS is recorded and survived; see
// CatchBusErrors in foretoken/options.h.
//
// The first fault replaces the mapping, from the faulting page to its end, by zeros: a file that
// was cut short lacks all of those pages. A reader of the range must check faulted() before it uses
// what it computed.
#pragma once

#include <cstddef>

namespace foretoken {

class GuardedRange {
 public:
  GuardedRange() = default;
  // Guards the mapping [begin, begin + size) until destruction, which must come before munmap.
  // `protection` as for mmap. Installs the handler if it is not there yet.
  GuardedRange(const void* begin, std::size_t size, int protection);
  GuardedRange(GuardedRange&& other) noexcept;
  GuardedRange& operator=(GuardedRange&& other) noexcept;
  ~GuardedRange();

  bool faulted() const noexcept;

  struct Entry;  // an entry of the list that the handler reads

 private:
  // Null: not guarded.
  Entry* entry_ = nullptr;
};

}  // namespace foretoken
