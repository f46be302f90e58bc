// SPDX-License-Identifier: Apache-2.0
#include "base/files/guarded_range.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>

#include "foretoken/options.h"

namespace foretoken {

// Entries are never freed, only reused, so that the handler can read the list at any moment.
struct GuardedRange::Entry {
  std::atomic<std::uintptr_t> begin{0};  // 0: free
  std::atomic<std::uintptr_t> end{0};
  std::atomic<int> protection{0};
  std::atomic<bool> faulted{false};
  Entry* next = nullptr;
};

namespace {

using Entry = GuardedRange::Entry;

std::atomic<bool> g_catches{true};
std::atomic<Entry*> g_entries{nullptr};
std::mutex g_entries_mutex;  // for changes of the list; the handler only reads it
std::uintptr_t g_page_bytes = 4096;
struct sigaction g_before = {};  // written once, before the handler is there

// Only atomics and mmap, which on Linux is a plain system call: safe in a signal handler.
bool ReplacePages(std::uintptr_t address) noexcept {
  for (Entry* e = g_entries.load(std::memory_order_acquire); e != nullptr; e = e->next) {
    const std::uintptr_t begin = e->begin.load(std::memory_order_acquire);
    const std::uintptr_t end = e->end.load(std::memory_order_relaxed);
    if (begin == 0 || address < begin || address >= end) continue;
    e->faulted.store(true, std::memory_order_release);
    const std::uintptr_t page = address & ~(g_page_bytes - 1);
    return mmap(reinterpret_cast<void*>(page), end - page,
                e->protection.load(std::memory_order_relaxed),
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED;
  }
  return false;
}

void HandBack(int signal, siginfo_t* info, void* context) noexcept {
  if ((g_before.sa_flags & SA_SIGINFO) != 0 && g_before.sa_sigaction != nullptr)
    return g_before.sa_sigaction(signal, info, context);
  const bool sent = info->si_code <= 0;  // sent by kill, not raised by a fault
  if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN)
    return g_before.sa_handler(signal);
  if (sent && g_before.sa_handler == SIG_IGN) return;
  // The system's default: a fault happens again at once, a signal that was sent is sent again.
  struct sigaction ends = {};
  ends.sa_handler = SIG_DFL;
  sigaction(signal, &ends, nullptr);
  if (sent) raise(signal);
}

void OnBusError(int signal, siginfo_t* info, void* context) {
  const int number = errno;
  if (info->si_code <= 0 || !ReplacePages(reinterpret_cast<std::uintptr_t>(info->si_addr)))
    HandBack(signal, info, context);
  errno = number;
}

void InstallOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    g_page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    sigaction(SIGBUS, nullptr, &g_before);
    struct sigaction action = {};
    action.sa_sigaction = OnBusError;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, nullptr);
  });
}

Entry* FreeEntry() {
  for (Entry* e = g_entries.load(std::memory_order_acquire); e != nullptr; e = e->next)
    if (e->begin.load(std::memory_order_relaxed) == 0) return e;
  auto* const entry = new Entry;
  entry->next = g_entries.load(std::memory_order_relaxed);
  g_entries.store(entry, std::memory_order_release);
  return entry;
}

}  // namespace

void CatchBusErrors(bool on) noexcept {
  g_catches.store(on);
}

GuardedRange::GuardedRange(const void* begin, std::size_t size, int protection) {
  if (!g_catches.load() || begin == nullptr || size == 0) return;
  InstallOnce();
  const std::lock_guard lock(g_entries_mutex);
  entry_ = FreeEntry();
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t pages = (size + g_page_bytes - 1) / g_page_bytes;
  entry_->end.store(address + pages * g_page_bytes, std::memory_order_relaxed);
  entry_->protection.store(protection, std::memory_order_relaxed);
  entry_->faulted.store(false, std::memory_order_relaxed);
  entry_->begin.store(address, std::memory_order_release);
}

GuardedRange::GuardedRange(GuardedRange&& other) noexcept
    : entry_(std::exchange(other.entry_, nullptr)) {}

GuardedRange& GuardedRange::operator=(GuardedRange&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

GuardedRange::~GuardedRange() {
  if (entry_ == nullptr) return;
  const std::lock_guard lock(g_entries_mutex);
  entry_->begin.store(0, std::memory_order_release);
}

bool GuardedRange::faulted() const noexcept {
  return entry_ != nullptr && entry_->faulted.load(std::memory_order_acquire);
}

}  // namespace foretoken
