// SPDX-License-Identifier: Apache-2.0
// kv/idle_blocks.h: blocks that nobody holds but whose content may be wanted again, in the order in
// which they became idle.
#pragma once

#include <cstdint>
#include <vector>

namespace foretoken::kv {

class IdleBlocks {
 public:
  static constexpr std::int32_t kNone = -1;

  // All memory is taken here.
  explicit IdleBlocks(int n_blocks = 0) : links_(static_cast<std::size_t>(n_blocks)) {}

  int size() const { return size_; }
  std::int32_t oldest() const { return oldest_; }  // kNone: there are none
  // The next one of a block in the list; kNone: it is the newest.
  std::int32_t NewerThan(std::int32_t block) const noexcept {
    return links_[static_cast<std::size_t>(block)].newer;
  }

  // REQUIRES: the block is not in the list. It becomes the newest one.
  void Append(std::int32_t block) noexcept {
    At(block) = {.older = newest_, .newer = kNone};
    (newest_ == kNone ? oldest_ : At(newest_).newer) = block;
    newest_ = block;
    ++size_;
  }
  // REQUIRES: the block is not in the list. It becomes the oldest one.
  void Prepend(std::int32_t block) noexcept {
    At(block) = {.older = kNone, .newer = oldest_};
    (oldest_ == kNone ? newest_ : At(oldest_).older) = block;
    oldest_ = block;
    ++size_;
  }
  // REQUIRES: the block is in the list.
  void Remove(std::int32_t block) noexcept {
    const Link& link = At(block);
    (link.older == kNone ? oldest_ : At(link.older).newer) = link.newer;
    (link.newer == kNone ? newest_ : At(link.newer).older) = link.older;
    --size_;
  }

 private:
  struct Link {
    std::int32_t older = kNone, newer = kNone;
  };
  Link& At(std::int32_t block) { return links_[static_cast<std::size_t>(block)]; }

  std::vector<Link> links_;
  std::int32_t oldest_ = kNone, newest_ = kNone;
  int size_ = 0;
};

}  // namespace foretoken::kv
