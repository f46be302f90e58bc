// SPDX-License-Identifier: Apache-2.0
#include "draft/lookup/ngram_index.h"

#include <algorithm>
#include <bit>

#include "base/seeded_hash.h"

namespace foretoken::draft {

void NgramIndex::Begin(int n, int max_tokens) {
  n_ = n;
  slots_.assign(std::bit_ceil(static_cast<std::size_t>(max_tokens) * 2 + 2), 0);
  before_.assign(static_cast<std::size_t>(max_tokens), -1);
}

// The slot that holds this n-gram, or the free slot where it would be put.
std::size_t NgramIndex::Slot(std::span<const Token> ngram, SaltId salt,
                             const Text& text) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  const std::uint64_t hash = SeededHashOf(ngram) + SeededHashOf(static_cast<std::uint64_t>(salt));
  for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
    const int end = slots_[i] - 1;
    if (end < 0) return i;
    if (text.SaltAt(static_cast<std::size_t>(end)) == salt &&
        std::equal(ngram.begin(), ngram.end(), text.tokens.begin() + (end + 1 - n_)))
      return i;
  }
}

void NgramIndex::Add(const Text& text) noexcept {
  const int size = static_cast<int>(text.tokens.size());
  if (size < n_) return;
  const auto ngram = text.tokens.last(static_cast<std::size_t>(n_));
  auto& slot = slots_[Slot(ngram, text.SaltAt(text.tokens.size() - 1), text)];
  before_[static_cast<std::size_t>(size - 1)] = slot - 1;
  slot = size;
}

int NgramIndex::Last(std::span<const Token> ngram, SaltId salt, const Text& text) const noexcept {
  return slots_[Slot(ngram, salt, text)] - 1;
}

}  // namespace foretoken::draft
