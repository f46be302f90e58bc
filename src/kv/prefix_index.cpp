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

std::size_t PrefixIndex::BucketOf(std::int64_t before, Tokens tokens) const noexcept {
  std::array<std::int32_t, tensor::kKvBlock + 2> key;
  key[0] = static_cast<std::int32_t>(before);
  key[1] = static_cast<std::int32_t>(before >> 32);
  std::copy(tokens.begin(), tokens.end(), key.begin() + 2);
  return static_cast<std::size_t>(SeededHashOf(key)) & (buckets_.size() - 1);
}

std::int32_t PrefixIndex::Find(std::int64_t before, Tokens tokens) const noexcept {
  std::int32_t block = buckets_[BucketOf(before, tokens)];
  while (block != kNone && (At(block).before != before ||
                            !std::equal(tokens.begin(), tokens.end(), At(block).tokens.begin())))
    block = At(block).next;
  return block;
}

void PrefixIndex::Add(std::int32_t block, std::int64_t before, Tokens tokens) noexcept {
  FORETOKEN_CHECK(!Has(block) && (before < 0 || Has(static_cast<std::int32_t>(before))));
  const std::size_t bucket = BucketOf(before, tokens);
  Entry& entry = At(block);
  entry = {.before = before,
           .next = buckets_[bucket],
           .bucket = static_cast<std::int32_t>(bucket),
           .n_followers = 0,
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
