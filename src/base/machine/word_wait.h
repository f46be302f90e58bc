// SPDX-License-Identifier: Apache-2.0
// base/machine/word_wait.h: threads that sleep until a word changes.
#pragma once

#include <atomic>
#include <cstdint>

namespace foretoken {

// Returns once the word is not `old`; may return before.
void SleepWhile(const std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept;
// Call it after the word was changed: wakes all that sleep on it.
void WakeAll(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace foretoken
