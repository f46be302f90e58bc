// SPDX-License-Identifier: Apache-2.0
// memory/failing_memory.h: makes a chosen allocation of this program fail. Counted are operator
// new, mmap where foretoken calls it and, without a sanitizer, malloc of the C libraries and the
// start of threads.
#pragma once

#include <cstdint>

namespace foretoken::tests {

// From the next Resume on allocations are counted; number `at` (from 1 on) fails, with
// `from_then_on` all that follow too. at = 0: none fails.
void FailAllocation(std::int64_t at, bool from_then_on);
void Resume() noexcept;
// Ends it; returns how many there were.
std::int64_t StopFailing() noexcept;
// That this program holds: of the heap and of anonymous mappings and mapped files.
std::int64_t BytesHeld() noexcept;

}  // namespace foretoken::tests
