// SPDX-License-Identifier: Apache-2.0
#include "base/machine/pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace foretoken {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t RoundUp(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

std::byte* TakePages(std::size_t& bytes) noexcept {
  // Over-map a large buffer so that it can start on a huge page, then return the surplus.
  const bool huge = bytes >= kHugePage;
  bytes = RoundUp(bytes, huge ? kHugePage : 4096);
  const std::size_t request = bytes + (huge ? kHugePage : 0);
  void* p = mmap(nullptr, request, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  auto address = reinterpret_cast<std::uintptr_t>(p);
  if (huge) {
    const std::uintptr_t start = RoundUp(address, kHugePage);
    if (start > address) munmap(p, start - address);
    const std::uintptr_t end = start + bytes;
    if (address + request > end) munmap(reinterpret_cast<void*>(end), address + request - end);
    address = start;
    madvise(reinterpret_cast<void*>(address), bytes,
            MADV_HUGEPAGE);  // advice: failure is harmless
  }
  return reinterpret_cast<std::byte*>(address);
}

void ReturnPages(std::byte* pages, std::size_t bytes) noexcept {
  munmap(pages, bytes);
}

}  // namespace foretoken
