// SPDX-License-Identifier: Apache-2.0
#include "base/aligned_buffer.h"

#include <limits>
#include <new>
#include <utility>

#include "base/machine/pages.h"

namespace foretoken {

AlignedBytes::AlignedBytes(std::size_t size_bytes) : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  if (size_bytes > std::numeric_limits<std::size_t>::max() / 2) throw std::bad_alloc();
  mapped_bytes_ = size_bytes;
  data_ = TakePages(mapped_bytes_);
  if (data_ == nullptr) throw std::bad_alloc();
}

AlignedBytes::~AlignedBytes() {
  if (data_ != nullptr) ReturnPages(data_, mapped_bytes_);
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
