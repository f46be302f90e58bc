// SPDX-License-Identifier: Apache-2.0
#include "base/machine/stack.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace foretoken {
namespace {

constexpr std::size_t kPage = 4096;

[[gnu::noinline]] void Touch(std::size_t bytes) noexcept {
  volatile char* const lowest = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t at = bytes; at >= kPage; at -= kPage) lowest[at - 1] = 0;
  lowest[0] = 0;
}

}  // namespace

bool ReserveStack(std::size_t bytes) noexcept {
  if (getpid() != gettid()) return true;
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur < 2 * bytes) return true;
  // The touch ends the process where it is refused, so a mapping is tried first.
  void* const trial =
      mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (trial == MAP_FAILED) return false;
  munmap(trial, 2 * bytes);
  Touch(bytes);
  return true;
}

}  // namespace foretoken
