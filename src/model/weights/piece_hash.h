// SPDX-License-Identifier: Apache-2.0
// model/weights/piece_hash.h: a hash of large memory that all threads compute: the hash of the hashes of
// pieces of one size. The number of threads does not change it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/machine/thread_pool.h"

namespace foretoken::model {

inline constexpr std::size_t kHashPieceBytes = std::size_t{4} << 20;

class PieceHasher {
 public:
  PieceHasher() = default;
  explicit PieceHasher(std::size_t size_bytes);

  // `data`: memory of size_bytes, the same in every call. Hashes the pieces in its first `n` bytes
  // that no earlier call has hashed. The caller does not change these bytes any more.
  void Advance(const std::byte* data, std::size_t n, ThreadPool& pool);
  // How many bytes the pieces have that are hashed so far, and the hash of these pieces.
  std::size_t hashed_bytes() const noexcept {
    return std::min(done_ * kHashPieceBytes, size_bytes_);
  }
  std::uint64_t hash_so_far() const;
  // REQUIRES: Advance was called with all bytes.
  std::uint64_t hash() const;

 private:
  std::size_t size_bytes_ = 0;
  std::size_t done_ = 0;  // pieces
  std::vector<std::uint64_t> pieces_;
};

std::uint64_t PieceHash(std::span<const std::byte> bytes, ThreadPool& pool);

}  // namespace foretoken::model
