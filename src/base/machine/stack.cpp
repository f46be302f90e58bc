// SPDX-License-Identifier: Apache-2.0
#include "base/machine/stack.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>

namespace foretoken {
namespace {

constexpr std::size_t kPage = 4096;

[[gnu::noinline]] void Touch(std::size_t bytes) noexcept {
  volatile char* const lowest = static_cast<volatile char*>(__builtin_alloca(bytes));
  for (std::size_t at = bytes; at >= kPage; at -= kPage) lowest[at - 1] = 0;
  lowest[0] = 0;
}

struct StackBounds {
  std::uintptr_t lowest = 0, end = 0;  // 0: unknown
};

StackBounds BoundsOfThisStack() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* lowest = nullptr;
  std::size_t size = 0, guard = 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  if (pthread_attr_getguardsize(&attributes, &guard) != 0) guard = 0;
  pthread_attr_destroy(&attributes);
  const auto begin = reinterpret_cast<std::uintptr_t>(lowest);
  return known ? StackBounds{begin + guard, begin + size} : StackBounds{};
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

std::size_t StackLeft() noexcept {
  static thread_local const StackBounds bounds = BoundsOfThisStack();
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return here > bounds.lowest && here < bounds.end ? here - bounds.lowest : SIZE_MAX;
}

}  // namespace foretoken
