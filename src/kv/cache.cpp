// SPDX-License-Identifier: Apache-2.0
#include "kv/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tensor/dtype.h"

namespace foretoken::kv {
namespace {

int PoolBlocks(const CacheShape& s) {
  return s.n_positions > 0 ? Cache::BlocksFor(s.n_positions)
                           : Cache::BlocksFor(s.max_positions) * s.n_sequences;
}

std::size_t PoolBytes(const CacheShape& s, std::size_t block_bytes) {
  return block_bytes * static_cast<std::size_t>(s.n_kv_heads) *
         static_cast<std::size_t>(s.n_layers) * static_cast<std::size_t>(PoolBlocks(s));
}

PrefixIndex::Tokens TokensOf(std::span<const Token> text, int block) {
  return PrefixIndex::Tokens(text.data() + std::ptrdiff_t{block} * tensor::kKvBlock,
                             tensor::kKvBlock);
}

}  // namespace

int Cache::BlocksFor(int positions) noexcept {
  return (positions + tensor::kKvBlock - 1) / tensor::kKvBlock;
}

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
  cache.n_blocks_ = PoolBlocks(shape);
  cache.k_block_bytes_ = tensor::KvBlockBytes(shape.k_type, shape.head_dim);
  cache.v_block_bytes_ = tensor::KvBlockBytes(shape.v_type, shape.head_dim);
  cache.k_ = AlignedBytes(PoolBytes(shape, cache.k_block_bytes_));
  cache.v_ = AlignedBytes(PoolBytes(shape, cache.v_block_bytes_));
  cache.sequences_.resize(static_cast<std::size_t>(shape.n_sequences));
  for (auto& sequence : cache.sequences_)
    sequence.blocks.reserve(static_cast<std::size_t>(per_sequence));
  cache.blocks_.resize(static_cast<std::size_t>(cache.n_blocks_));
  for (int id = cache.n_blocks_ - 1; id >= 0; --id) cache.free_.push_back(id);
  cache.index_ = PrefixIndex(cache.n_blocks_);
  return cache;
}

std::int32_t Cache::Take() noexcept {
  if (free_.empty()) {
    const std::int32_t oldest = oldest_idle_;
    FORETOKEN_CHECK(oldest != kNone);
    LeaveIdle(oldest);
    index_.Remove(oldest);
    free_.push_back(oldest);
  }
  const std::int32_t block = free_.back();
  free_.pop_back();
  At(block).n_users = 1;
  return block;
}

void Cache::Hold(std::int32_t block) noexcept {
  if (At(block).n_users++ == 0) LeaveIdle(block);
}

void Cache::Release(std::int32_t block) noexcept {
  Block& b = At(block);
  if (--b.n_users > 0) return;
  if (!index_.Has(block)) return free_.push_back(block);
  b = {.n_users = 0, .older = newest_idle_, .newer = kNone};
  (newest_idle_ == kNone ? oldest_idle_ : At(newest_idle_).newer) = block;
  newest_idle_ = block;
  ++n_idle_;
}

void Cache::LeaveIdle(std::int32_t block) noexcept {
  const Block& b = At(block);
  (b.older == kNone ? oldest_idle_ : At(b.older).newer) = b.newer;
  (b.newer == kNone ? newest_idle_ : At(b.newer).older) = b.older;
  --n_idle_;
}

int Cache::MissingBlocks(SeqId seq, int n_rows) const noexcept {
  const Sequence& s = sequences_[seq];
  return std::max(0, BlocksFor(s.length + n_rows) - static_cast<int>(s.blocks.size()));
}

void Cache::Reserve(SeqId seq, int n_rows) noexcept {
  Sequence& s = sequences_[seq];
  FORETOKEN_CHECK(n_rows >= 0 && s.length + n_rows <= shape_.max_positions);
  const auto needed = static_cast<std::size_t>(BlocksFor(s.length + n_rows));
  while (s.blocks.size() < needed) s.blocks.push_back(Take());
}

void Cache::Truncate(SeqId seq, int length) noexcept {
  Sequence& s = sequences_[seq];
  FORETOKEN_CHECK(length >= 0 && length <= s.length);
  FORETOKEN_CHECK(length % tensor::kKvBlock == 0 || length >= s.n_published * tensor::kKvBlock);
  s.length = length;
  s.n_published = std::min(s.n_published, length / tensor::kKvBlock);
  const auto needed = static_cast<std::size_t>(BlocksFor(length));
  while (s.blocks.size() > needed) {
    Release(s.blocks.back());
    s.blocks.pop_back();
  }
}

// The published block that holds block `at` of the text and follows `before`, or kNone.
std::int32_t Cache::FindNext(std::int32_t before, std::span<const Token> text,
                             int at) const noexcept {
  const bool full = static_cast<int>(text.size()) >= (at + 1) * tensor::kKvBlock;
  return full ? index_.Find(before, TokensOf(text, at)) : kNone;
}

void Cache::Publish(SeqId seq, std::span<const Token> text) noexcept {
  Sequence& s = sequences_[seq];
  const int n_full = std::min(s.length, static_cast<int>(text.size())) / tensor::kKvBlock;
  for (; s.n_published < n_full; ++s.n_published) {
    const std::int32_t before = s.n_published == 0 ? kNone : s.blocks[s.n_published - 1];
    std::int32_t& own = s.blocks[s.n_published];
    const std::int32_t known = FindNext(before, text, s.n_published);
    if (known == kNone) {
      index_.Add(own, before, TokensOf(text, s.n_published));
    } else {
      Hold(known);
      Release(std::exchange(own, known));
    }
  }
}

int Cache::Share(SeqId seq, std::span<const Token> text) noexcept {
  Sequence& s = sequences_[seq];
  if (s.length != s.n_published * tensor::kKvBlock) return 0;
  const int length = s.length;
  for (;;) {
    const std::int32_t before = s.blocks.empty() ? kNone : s.blocks.back();
    const std::int32_t next = FindNext(before, text, s.n_published);
    if (next == kNone) return s.length - length;
    Hold(next);
    s.blocks.push_back(next);
    ++s.n_published;
    s.length += tensor::kKvBlock;
  }
}

int Cache::SharedBlocks(std::span<const Token> text) const noexcept {
  std::int32_t block = kNone;
  for (int n = 0;; ++n) {
    block = FindNext(block, text, n);
    if (block == kNone || blocks_[static_cast<std::size_t>(block)].n_users == 0) return n;
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
