// SPDX-License-Identifier: Apache-2.0
#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <limits>
#include <new>
#include <utility>

namespace foretoken {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::size_t RoundUp(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

}  // namespace

AlignedBytes::AlignedBytes(std::size_t size_bytes) : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes > std::numeric_limits<std::size_t>::max() / 2) throw std::bad_alloc();
  // Over-map a large buffer so that it can start on a huge page, then return the surplus.
  const bool huge = size_bytes >= kHugePage;
  mapped_bytes_ = RoundUp(size_bytes, huge ? kHugePage : 4096);
  const std::size_t request = mapped_bytes_ + (huge ? kHugePage : 0);
  void* p = mmap(nullptr, request, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  auto address = reinterpret_cast<std::uintptr_t>(p);
  if (huge) {
    const std::uintptr_t start = RoundUp(address, kHugePage);
    if (start > address) munmap(p, start - address);
    const std::uintptr_t end = start + mapped_bytes_;
    if (address + request > end) munmap(reinterpret_cast<void*>(end), address + request - end);
    address = start;
    madvise(reinterpret_cast<void*>(address), mapped_bytes_,
            MADV_HUGEPAGE);  // advice: failure is harmless
  }
  data_ = reinterpret_cast<std::byte*>(address);
}

AlignedBytes::~AlignedBytes() {
  if (data_ != nullptr) munmap(data_, mapped_bytes_);
}

AlignedBytes::AlignedBytes(AlignedBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      mapped_bytes_(std::exchange(other.mapped_bytes_, 0)) {}

AlignedBytes& AlignedBytes::operator=(AlignedBytes&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(mapped_bytes_, other.mapped_bytes_);
  return *this;
}

}  // namespace foretoken
