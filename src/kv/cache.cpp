// SPDX-License-Identifier: Apache-2.0
#include "kv/cache.h"

#include <fmt/format.h>

#include "base/check.h"
#include "tensor/dtype.h"

namespace foretoken::kv {
namespace {

int BlocksFor(int positions) {
  return (positions + tensor::kKvBlock - 1) / tensor::kKvBlock;
}

std::size_t PoolBytes(const CacheShape& s, std::size_t block_bytes) {
  return block_bytes * static_cast<std::size_t>(s.n_kv_heads) *
         static_cast<std::size_t>(s.n_layers) *
         static_cast<std::size_t>(BlocksFor(s.max_positions)) *
         static_cast<std::size_t>(s.n_sequences);
}

}  // namespace

std::size_t Cache::Bytes(const CacheShape& s) {
  return PoolBytes(s, tensor::KvBlockBytes(s.k_type, s.head_dim)) +
         PoolBytes(s, tensor::KvBlockBytes(s.v_type, s.head_dim));
}

Result<Cache> Cache::Create(const CacheShape& shape) {
  FORETOKEN_CHECK(shape.n_layers > 0 && shape.n_kv_heads > 0 && shape.n_sequences > 0 &&
                  shape.max_positions > 0);
  const bool q8 = shape.k_type == tensor::KvType::kQ8_0 || shape.v_type == tensor::KvType::kQ8_0;
  if (shape.head_dim % (q8 ? 32 : 8) != 0)
    return Fail(
        ErrorCode::kUnsupported,
        fmt::format(
            "cache: head size {} is not a multiple of {}; {}", shape.head_dim, q8 ? 32 : 8,
            q8 ? "use --cache-type-k f16 --cache-type-v f16" : "this model cannot run here"));
  Cache cache;
  cache.shape_ = shape;
  const int per_sequence = BlocksFor(shape.max_positions);
  cache.n_blocks_ = per_sequence * shape.n_sequences;
  cache.k_block_bytes_ = tensor::KvBlockBytes(shape.k_type, shape.head_dim);
  cache.v_block_bytes_ = tensor::KvBlockBytes(shape.v_type, shape.head_dim);
  cache.k_ = AlignedBytes(PoolBytes(shape, cache.k_block_bytes_));
  cache.v_ = AlignedBytes(PoolBytes(shape, cache.v_block_bytes_));
  cache.sequences_.resize(static_cast<std::size_t>(shape.n_sequences));
  for (auto& sequence : cache.sequences_)
    sequence.blocks.reserve(static_cast<std::size_t>(per_sequence));
  for (int id = cache.n_blocks_ - 1; id >= 0; --id) cache.free_.push_back(id);
  return cache;
}

void Cache::Reserve(SeqId seq, int n_rows) noexcept {
  Sequence& s = sequences_[seq];
  FORETOKEN_CHECK(n_rows >= 0 && s.length + n_rows <= shape_.max_positions);
  const auto needed = static_cast<std::size_t>(BlocksFor(s.length + n_rows));
  while (s.blocks.size() <
         needed) {  // the pool holds max_positions for every sequence: it cannot run out
    s.blocks.push_back(free_.back());
    free_.pop_back();
  }
}

void Cache::Truncate(SeqId seq, int length) noexcept {
  Sequence& s = sequences_[seq];
  FORETOKEN_CHECK(length >= 0 && length <= s.length);
  s.length = length;
  const auto needed = static_cast<std::size_t>(BlocksFor(length));
  while (s.blocks.size() > needed) {
    free_.push_back(s.blocks.back());
    s.blocks.pop_back();
  }
}

Cache::HeadView Cache::Head(int layer, int head) noexcept {
  const auto index = static_cast<std::size_t>(layer * shape_.n_kv_heads + head) *
                     static_cast<std::size_t>(n_blocks_);
  return {k_.data() + index * k_block_bytes_, v_.data() + index * v_block_bytes_, k_block_bytes_,
          v_block_bytes_};
}

Transaction::Transaction(Cache& cache, std::span<const Rows> rows) noexcept
    : cache_(cache), rows_(rows) {
  for (const Rows& r : rows_) cache_.Reserve(r.seq, r.n);
}

Transaction::~Transaction() {
  if (!open_) return;
  for (const Rows& r : rows_) cache_.Truncate(r.seq, cache_.length(r.seq));
}

void Transaction::Commit(std::span<const int> kept) noexcept {
  FORETOKEN_CHECK(open_ && kept.size() == rows_.size());
  open_ = false;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    FORETOKEN_CHECK(kept[i] >= 0 && kept[i] <= rows_[i].n);
    auto& sequence = cache_.sequences_[rows_[i].seq];
    sequence.length += kept[i];
    cache_.Truncate(rows_[i].seq, sequence.length);
  }
}

}  // namespace foretoken::kv
