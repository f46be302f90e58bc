// SPDX-License-Identifier: Apache-2.0
// memory/failing_memory.h: makes a chosen allocation of this program fail. It counts operator new,
// mmap where foretoken calls it and, without a sanitizer, malloc in the C libraries and the start
// of threads.
#pragma once

#include <cstdint>

namespace foretoken::tests {

// Allocations are counted from the next Resume on; number `at` (from 1) fails, and with
// `from_then_on` all later ones too. at = 0: none fails.
void FailAllocation(std::int64_t at, bool from_then_on);
void Resume() noexcept;
// Ends that; returns the number of allocations.
std::int64_t StopFailing() noexcept;
// The memory of this program: the heap, anonymous mappings and mapped files.
std::int64_t BytesHeld() noexcept;

}  // namespace foretoken::tests
