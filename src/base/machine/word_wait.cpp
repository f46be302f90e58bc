// SPDX-License-Identifier: Apache-2.0
#include "base/machine/word_wait.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstddef>

// The system call itself, and no std::atomic::wait: that first yields the CPU a few times, and a thread that
// yields waits behind all others that want to run, even those that should run only when the machine is idle, for
// a slice of milliseconds. One that sleeps is back as soon as it is woken.
namespace foretoken {
namespace {

constexpr std::size_t kLine = 64;  // bytes that the processor's caches keep together

struct alignas(kLine) Sleepers {
  std::atomic<int> n = 0;
};

// How many threads may sleep on a word, or on another one of its group: most words are changed while nobody
// sleeps, and then the system need not be called.
std::atomic<int>& SleepersOn(const std::atomic<std::uint32_t>& word) noexcept {
  static std::array<Sleepers, 16> groups;
  return groups[reinterpret_cast<std::uintptr_t>(&word) / kLine % groups.size()].n;
}

void Futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t) &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  syscall(SYS_futex, &word, operation, value, nullptr, nullptr, 0);
}

}  // namespace

// The thread is counted before the system compares the word, and the word is changed before the count is
// read: so either the word is seen to have changed, or the sleeper is seen.
void SleepWhile(const std::atomic<std::uint32_t>& word, std::uint32_t old) noexcept {
  std::atomic<int>& sleepers = SleepersOn(word);
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  Futex(word, FUTEX_WAIT_PRIVATE, old);
  sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void WakeAll(std::atomic<std::uint32_t>& word) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (SleepersOn(word).load(std::memory_order_relaxed) > 0)
    Futex(word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

}  // namespace foretoken
