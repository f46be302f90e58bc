// SPDX-License-Identifier: Apache-2.0
#include "base/machine/word_wait.h"

namespace foretoken {

void SleepWhile(const std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept {
  word.wait(old, std::memory_order_acquire);
}

void WakeAll(std::atomic<std::uint32_t>& word) noexcept {
  word.notify_all();
}

}  // namespace foretoken
