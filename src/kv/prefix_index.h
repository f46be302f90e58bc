// SPDX-License-Identifier: Apache-2.0
// kv/prefix_index.h: finds blocks by the tokens of their positions and of all positions before: full
// ones, and tails, which are the last blocks of texts that have ended and not full.
//
// The key of a block is the block before it and its own tokens. The first block of a text has the
// salt of its request in place of a block before it, so texts of two salts never meet. Both are compared; a hash only says
// where to look. So equal entries mean equal texts from the first token on, as long as no block is
// removed while another one in the index follows it.
//
// A tail is looked for among those that follow the same block, of which there are at most kMostTails.
//
// All memory is taken in the constructor. Only one thread may use an index at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "tensor/block_layout.h"

namespace foretoken::kv {

class PrefixIndex {
 public:
  static constexpr std::int32_t kNone = -1;
  static constexpr int kMostTails = 16;
  using Tokens = std::span<const Token, tensor::kKvBlock>;

  explicit PrefixIndex(int n_blocks = 0);

  // What stands before the first block of a text.
  static std::int64_t BeginOf(SaltId salt) noexcept { return -1 - salt; }

  // The block with these tokens that follows `before`, which is a block or BeginOf; or kNone.
  std::int32_t Find(std::int64_t before, Tokens tokens) const noexcept;
  bool Has(std::int32_t block) const noexcept { return At(block).bucket != kNone; }

  // The tail that follows `before` and has the most tokens in common with the beginning of `tokens`,
  // and how many these are. {kNone, 0}: none has any.
  struct Tail {
    std::int32_t block = kNone;
    int n_common = 0;
  };
  Tail FindTail(std::int64_t before, std::span<const Token> tokens) const noexcept;
  int TailLength(std::int32_t block) const noexcept { return At(block).n_tokens; }
  // What stands before a block that is in the index: a block, or BeginOf.
  std::int64_t Before(std::int32_t block) const noexcept { return At(block).before; }
  bool HasFollowers(std::int32_t block) const noexcept { return At(block).n_followers > 0; }
  // The tokens of a block that is in the index.
  std::span<const Token> TokensOf(std::int32_t block) const noexcept {
    return std::span(At(block).tokens).first(static_cast<std::size_t>(At(block).n_tokens));
  }
  // Tokens of a block in the index that `tokens` begins with.
  int Common(std::int32_t block, std::span<const Token> tokens) const noexcept;

  // REQUIRES: neither `block` nor one that Find would return is in the index, and `before` is.
  void Add(std::int32_t block, std::int64_t before, Tokens tokens) noexcept;
  // REQUIRES: `block` is not in the index, `before` is, and there are 1 to 31 tokens. Returns the tail
  // that has to be removed: one with the same tokens, or the oldest of too many; or kNone.
  std::int32_t AddTail(std::int32_t block, std::int64_t before,
                       std::span<const Token> tokens) noexcept;
  // REQUIRES: the block is in the index, and no block that follows it is.
  void Remove(std::int32_t block) noexcept;

 private:
  struct Entry {
    std::int64_t before = kNone;
    std::int32_t next = kNone;    // the next one in its bucket
    std::int32_t bucket = kNone;  // kNone: not in the index
    int n_followers = 0;
    int n_tokens = tensor::kKvBlock;  // fewer: it is a tail
    std::array<Token, tensor::kKvBlock> tokens;
  };
  Entry& At(std::int32_t block) { return entries_[static_cast<std::size_t>(block)]; }
  const Entry& At(std::int32_t block) const { return entries_[static_cast<std::size_t>(block)]; }
  std::size_t BucketOf(std::int64_t before, std::span<const Token> tokens) const noexcept;
  void Insert(std::int32_t block, std::int64_t before, std::span<const Token> tokens,
              std::size_t bucket) noexcept;

  std::vector<Entry> entries_;         // by block
  std::vector<std::int32_t> buckets_;  // the first block of each; a power of two of them
};

}  // namespace foretoken::kv
