// SPDX-License-Identifier: Apache-2.0
// base/machine/stack.h: the stacks of threads.
#pragma once

#include <cstddef>

namespace foretoken {

inline constexpr std::size_t kPassStackBytes = 1 << 20;  // a pass needs up to 700 KiB (AMX)

// The main thread's stack grows while it is used. Where the address space is limited and used up,
// a growth that is refused ends the process. This takes `bytes` of the stack now, where a refusal
// can be told. Other threads have their whole stack from the start, and a stack that may not become
// twice as large is left alone. False: there is no memory.
[[nodiscard]] bool ReserveStack(std::size_t bytes) noexcept;

// The bytes that the calling thread may still use of its stack: what a function that calls itself
// asks, so that a deep input is an error and not the end of the process. Cheap, but for the first
// call in a thread. SIZE_MAX: the system does not tell, or the caller runs on another stack.
std::size_t StackLeft() noexcept;

}  // namespace foretoken
