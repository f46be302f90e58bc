// SPDX-License-Identifier: Apache-2.0
#include "kv/window_blocks.h"

#include "base/check.h"

namespace foretoken::kv {

WindowBlocks::WindowBlocks(int n_blocks, int n_owners)
    : blocks_(static_cast<std::size_t>(n_blocks)),
      of_(n_blocks == 0 ? 0 : static_cast<std::size_t>(n_owners), kNone),
      idle_(n_blocks) {
  free_.reserve(static_cast<std::size_t>(n_blocks));
  for (int block = n_blocks - 1; block >= 0; --block) free_.push_back(block);
}

std::int32_t WindowBlocks::Take() noexcept {
  if (free_.empty()) {
    FORETOKEN_CHECK(idle_.size() > 0);
    Detach(At(idle_.oldest()).owner);
  }
  const std::int32_t block = free_.back();
  free_.pop_back();
  At(block).n_users = 1;
  return block;
}

void WindowBlocks::Hold(std::int32_t block) noexcept {
  if (At(block).n_users++ == 0) idle_.Remove(block);
}

void WindowBlocks::Release(std::int32_t block) noexcept {
  Block& b = At(block);
  if (--b.n_users > 0) return;
  if (b.owner == kNone)
    free_.push_back(block);
  else
    idle_.Append(block);
}

void WindowBlocks::Attach(std::int32_t block, std::int32_t owner) noexcept {
  FORETOKEN_CHECK(At(block).owner == kNone && Of(owner) == kNone);
  At(block).owner = owner;
  of_[static_cast<std::size_t>(owner)] = block;
}

void WindowBlocks::Detach(std::int32_t owner) noexcept {
  if (of_.empty() || Of(owner) == kNone) return;
  const std::int32_t block = Of(owner);
  of_[static_cast<std::size_t>(owner)] = kNone;
  At(block).owner = kNone;
  if (At(block).n_users > 0) return;
  idle_.Remove(block);
  free_.push_back(block);
}

}  // namespace foretoken::kv
