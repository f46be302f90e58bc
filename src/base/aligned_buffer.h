// SPDX-License-Identifier: Apache-2.0
// base/aligned_buffer.h: owning, 64-byte aligned, zero-filled memory. Large buffers are on huge
// pages if the system offers them. Movable, not copyable. Untouched pages of a large buffer use no
// resident memory.
#pragma once

#include <cstddef>
#include <span>

namespace foretoken {

class AlignedBytes {
 public:
  AlignedBytes() = default;
  // Throws std::bad_alloc if the system gives no more memory, as operator new does (see
  // foretoken/result.h).
  explicit AlignedBytes(std::size_t size_bytes);
  ~AlignedBytes();
  AlignedBytes(AlignedBytes&& other) noexcept;
  AlignedBytes& operator=(AlignedBytes&& other) noexcept;

  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
};

// Such bytes, counted in elements of a trivial type.
template <typename T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size) : bytes_(size * sizeof(T)), size_(size) {}

  T* data() noexcept { return reinterpret_cast<T*>(bytes_.data()); }
  const T* data() const noexcept { return reinterpret_cast<const T*>(bytes_.data()); }
  std::size_t size() const noexcept { return size_; }
  T& operator[](std::size_t i) noexcept { return data()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data()[i]; }
  std::span<T> span() noexcept { return {data(), size_}; }
  std::span<const T> span() const noexcept { return {data(), size_}; }

 private:
  AlignedBytes bytes_;
  std::size_t size_ = 0;
};

}  // namespace foretoken
