// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/machine/background_thread.h"
#include "base/machine/stack.h"
#include "base/machine/word_wait.h"
#include "base/windows/system_error.h"

namespace foretoken {

std::thread BackgroundThread(std::function<void()> work) {
  return std::thread(std::move(work));
}

void RunWhenIdle() noexcept {
  SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_IDLE);
}

// The waits of g++'s own atomics miss a change on systems without Linux's calls.
void SleepWhile(const std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept {
  WaitOnAddress(const_cast<std::atomic<std::uint32_t>*>(&word), &old, sizeof old, INFINITE);
}

void WakeAll(std::atomic<std::uint32_t>& word) noexcept {
  WakeByAddressAll(&word);
}

// The system keeps what the stack may need from the start.
bool ReserveStack(std::size_t bytes) noexcept {
  return bytes <= StackLeft();
}

std::size_t StackLeft() noexcept {
  // Pages that tell of an overflow lie at the end.
  constexpr std::size_t kGuard = 16 << 10;
  ULONG_PTR lowest = 0, end = 0;
  GetCurrentThreadStackLimits(&lowest, &end);
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here <= lowest || here >= end) return SIZE_MAX;
  return here - lowest - std::min<std::size_t>(kGuard, here - lowest);
}

}  // namespace foretoken
