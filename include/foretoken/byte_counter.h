// SPDX-License-Identifier: Apache-2.0
// foretoken/byte_counter.h: counts the memory of what waits between threads, for a program that
// bounds it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace foretoken {

// A count of bytes, which a program implements.
class ByteCounter {
 public:
  virtual ~ByteCounter() = default;
  // Adds to the count, modulo 2^64: adding 0 - n takes n bytes off. Any thread, several at once.
  virtual void Add(std::size_t bytes) noexcept = 0;
};

// Bytes that a counter counts while this object lives. One thread at a time.
class ByteHold {
 public:
  ByteHold() = default;
  // A null counter counts nothing.
  explicit ByteHold(std::shared_ptr<ByteCounter> counter, std::size_t bytes = 0) noexcept
      : counter_(std::move(counter)) {
    Set(bytes);
  }
  ~ByteHold() { Set(0); }
  ByteHold(ByteHold&& other) noexcept
      : counter_(std::move(other.counter_)), bytes_(std::exchange(other.bytes_, 0)) {}
  ByteHold& operator=(ByteHold&& other) noexcept {
    std::swap(counter_, other.counter_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  void Set(std::size_t bytes) noexcept {
    if (counter_) counter_->Add(bytes - std::exchange(bytes_, bytes));
  }

 private:
  std::shared_ptr<ByteCounter> counter_;
  std::size_t bytes_ = 0;
};

}  // namespace foretoken
