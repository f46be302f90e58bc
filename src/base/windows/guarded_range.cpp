// SPDX-License-Identifier: Apache-2.0
// Windows lets nobody cut a file short that is mapped: no page of it can be missing.
#include "base/files/guarded_range.h"

#include "foretoken/options.h"

namespace foretoken {

void CatchBusErrors(bool) noexcept {}

GuardedRange::GuardedRange(const void*, std::size_t, int) {}
GuardedRange::GuardedRange(GuardedRange&&) noexcept {}
GuardedRange& GuardedRange::operator=(GuardedRange&&) noexcept {
  return *this;
}
GuardedRange::~GuardedRange() = default;
bool GuardedRange::faulted() const noexcept {
  return false;
}

}  // namespace foretoken
