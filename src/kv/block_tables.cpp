// SPDX-License-Identifier: Apache-2.0
#include "kv/block_tables.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace foretoken::kv {
namespace {

PrefixIndex::Tokens TokensOf(std::span<const Token> text, int block) {
  return PrefixIndex::Tokens(text.data() + std::ptrdiff_t{block} * tensor::kKvBlock,
                             tensor::kKvBlock);
}

}  // namespace

BlockTables::BlockTables(const TablesShape& shape)
    : shape_(shape), n_blocks_(shape.n_blocks()), index_(n_blocks_) {
  FORETOKEN_CHECK(shape.n_sequences > 0 && shape.max_positions > 0);
  sequences_.resize(static_cast<std::size_t>(shape.n_sequences));
  for (Sequence& sequence : sequences_)
    sequence.blocks.reserve(static_cast<std::size_t>(BlocksFor(shape.max_positions)));
  blocks_.resize(static_cast<std::size_t>(n_blocks_));
  free_.reserve(static_cast<std::size_t>(n_blocks_));
  for (int id = n_blocks_ - 1; id >= 0; --id) free_.push_back(id);
}

std::int32_t BlockTables::Take() noexcept {
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

void BlockTables::Hold(std::int32_t block) noexcept {
  if (At(block).n_users++ == 0) LeaveIdle(block);
}

void BlockTables::Release(std::int32_t block) noexcept {
  Block& b = At(block);
  if (--b.n_users > 0) return;
  if (!index_.Has(block)) return free_.push_back(block);
  b = {.n_users = 0, .older = newest_idle_, .newer = kNone};
  (newest_idle_ == kNone ? oldest_idle_ : At(newest_idle_).newer) = block;
  newest_idle_ = block;
  ++n_idle_;
}

void BlockTables::LeaveIdle(std::int32_t block) noexcept {
  const Block& b = At(block);
  (b.older == kNone ? oldest_idle_ : At(b.older).newer) = b.newer;
  (b.newer == kNone ? newest_idle_ : At(b.newer).older) = b.older;
  --n_idle_;
}

int BlockTables::MissingBlocks(SeqId seq, int n_rows) const noexcept {
  const Sequence& s = sequences_[seq];
  return std::max(0, BlocksFor(s.length + n_rows) - static_cast<int>(s.blocks.size()));
}

void BlockTables::Reserve(SeqId seq, int n_rows) noexcept {
  Sequence& s = sequences_[seq];
  FORETOKEN_CHECK(n_rows >= 0 && s.length + n_rows <= shape_.max_positions);
  const auto needed = static_cast<std::size_t>(BlocksFor(s.length + n_rows));
  while (s.blocks.size() < needed) s.blocks.push_back(Take());
}

void BlockTables::Append(SeqId seq, int n_rows) noexcept {
  sequences_[seq].length += n_rows;
  Truncate(seq, sequences_[seq].length);
}

void BlockTables::Truncate(SeqId seq, int length) noexcept {
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

// The published block that holds the text's block number `at` and follows `before`; kNone where
// there is none.
std::int32_t BlockTables::FindNext(std::int32_t before, std::span<const Token> text,
                                   int at) const noexcept {
  const bool full = static_cast<int>(text.size()) >= (at + 1) * tensor::kKvBlock;
  return full ? index_.Find(before, TokensOf(text, at)) : kNone;
}

void BlockTables::Publish(SeqId seq, std::span<const Token> text) noexcept {
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

int BlockTables::Share(SeqId seq, std::span<const Token> text) noexcept {
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

int BlockTables::SharedBlocks(std::span<const Token> text) const noexcept {
  std::int32_t block = kNone;
  for (int n = 0;; ++n) {
    block = FindNext(block, text, n);
    if (block == kNone || blocks_[static_cast<std::size_t>(block)].n_users == 0) return n;
  }
}

}  // namespace foretoken::kv
