// SPDX-License-Identifier: Apache-2.0
#include "model/weights/piece_hash.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"

namespace foretoken::model {

PieceHasher::PieceHasher(std::size_t size_bytes)
    : size_bytes_(size_bytes), pieces_((size_bytes + kHashPieceBytes - 1) / kHashPieceBytes) {}

void PieceHasher::Advance(const std::byte* data, std::size_t n, ThreadPool& pool) {
  const std::size_t end = n >= size_bytes_ ? pieces_.size() : n / kHashPieceBytes;
  if (end <= done_) return;
  pool.Run([&](int thread) {
    const auto share = pool.ShareOf(static_cast<int>(end - done_), thread);
    for (int i = share.begin; i < share.end; ++i) {
      const std::size_t piece = done_ + static_cast<std::size_t>(i), at = piece * kHashPieceBytes;
      pieces_[piece] = Hash({data + at, std::min(kHashPieceBytes, size_bytes_ - at)});
    }
  });
  done_ = end;
}

std::uint64_t PieceHasher::hash_so_far() const {
  return HashOf(std::span(pieces_).first(done_));
}

std::uint64_t PieceHasher::hash() const {
  FORETOKEN_CHECK(done_ == pieces_.size());
  return hash_so_far();
}

std::uint64_t PieceHash(std::span<const std::byte> bytes, ThreadPool& pool) {
  PieceHasher hasher(bytes.size());
  hasher.Advance(bytes.data(), bytes.size(), pool);
  return hasher.hash();
}

}  // namespace foretoken::model
