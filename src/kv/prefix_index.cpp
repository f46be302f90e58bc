// SPDX-License-Identifier: Apache-2.0
#include "kv/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/seeded_hash.h"

namespace foretoken::kv {

PrefixIndex::PrefixIndex(int n_blocks)
    : entries_(static_cast<std::size_t>(n_blocks)),
      buckets_(std::bit_ceil(2 * static_cast<std::size_t>(n_blocks) + 1), kNone) {}

// Tails have the bucket of no tokens, so all that follow a block are in one.
std::size_t PrefixIndex::BucketOf(std::int64_t before,
                                  std::span<const Token> tokens) const noexcept {
  std::array<std::int32_t, tensor::kKvBlock + 2> key;
  key[0] = static_cast<std::int32_t>(before);
  key[1] = static_cast<std::int32_t>(before >> 32);
  std::copy(tokens.begin(), tokens.end(), key.begin() + 2);
  const auto hash = SeededHashOf(std::span<const std::int32_t>(key).first(tokens.size() + 2));
  return static_cast<std::size_t>(hash) & (buckets_.size() - 1);
}

std::int32_t PrefixIndex::Find(std::int64_t before, Tokens tokens) const noexcept {
  std::int32_t block = buckets_[BucketOf(before, tokens)];
  while (block != kNone && (At(block).before != before || At(block).n_tokens != tensor::kKvBlock ||
                            !std::equal(tokens.begin(), tokens.end(), At(block).tokens.begin())))
    block = At(block).next;
  return block;
}

int PrefixIndex::Common(std::int32_t block, std::span<const Token> tokens) const noexcept {
  const Entry& entry = At(block);
  const auto own = std::span(entry.tokens).first(static_cast<std::size_t>(entry.n_tokens));
  const auto parts = std::mismatch(own.begin(), own.end(), tokens.begin(), tokens.end());
  return static_cast<int>(parts.first - own.begin());
}

PrefixIndex::Tail PrefixIndex::FindTail(std::int64_t before,
                                        std::span<const Token> tokens) const noexcept {
  Tail best;
  for (std::int32_t block = buckets_[BucketOf(before, {})]; block != kNone;
       block = At(block).next) {
    const Entry& entry = At(block);
    if (entry.before != before || entry.n_tokens == tensor::kKvBlock) continue;
    const int n_common = Common(block, tokens);
    if (n_common > best.n_common) best = {.block = block, .n_common = n_common};
  }
  return best;
}

void PrefixIndex::Add(std::int32_t block, std::int64_t before, Tokens tokens) noexcept {
  Insert(block, before, tokens, BucketOf(before, tokens));
}

// The newest entry of a bucket is its first one.
std::int32_t PrefixIndex::AddTail(std::int32_t block, std::int64_t before,
                                  std::span<const Token> tokens) noexcept {
  FORETOKEN_CHECK(!tokens.empty() && tokens.size() < tensor::kKvBlock);
  const std::size_t bucket = BucketOf(before, {});
  std::int32_t same = kNone, oldest = kNone;
  int n_tails = 0;
  for (std::int32_t at = buckets_[bucket]; at != kNone; at = At(at).next) {
    const Entry& entry = At(at);
    if (entry.before != before || entry.n_tokens == tensor::kKvBlock) continue;
    ++n_tails, oldest = at;
    const auto own = std::span(entry.tokens).first(static_cast<std::size_t>(entry.n_tokens));
    if (std::equal(own.begin(), own.end(), tokens.begin(), tokens.end())) same = at;
  }
  Insert(block, before, tokens, bucket);
  if (same != kNone) return same;
  return n_tails < kMostTails ? kNone : oldest;
}

void PrefixIndex::Insert(std::int32_t block, std::int64_t before, std::span<const Token> tokens,
                         std::size_t bucket) noexcept {
  FORETOKEN_CHECK(!Has(block) && (before < 0 || Has(static_cast<std::int32_t>(before))));
  Entry& entry = At(block);
  entry = {.before = before,
           .next = buckets_[bucket],
           .bucket = static_cast<std::int32_t>(bucket),
           .n_followers = 0,
           .n_tokens = static_cast<int>(tokens.size()),
           .tokens = {}};
  std::copy(tokens.begin(), tokens.end(), entry.tokens.begin());
  buckets_[bucket] = block;
  if (before >= 0) ++At(static_cast<std::int32_t>(before)).n_followers;
}

void PrefixIndex::Remove(std::int32_t block) noexcept {
  Entry& entry = At(block);
  FORETOKEN_CHECK(Has(block) && entry.n_followers == 0);
  std::int32_t* link = &buckets_[static_cast<std::size_t>(entry.bucket)];
  while (*link != block) link = &At(*link).next;
  *link = entry.next;
  entry.bucket = kNone;
  if (entry.before >= 0) --At(static_cast<std::int32_t>(entry.before)).n_followers;
}

}  // namespace foretoken::kv
