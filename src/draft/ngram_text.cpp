// SPDX-License-Identifier: Apache-2.0
#include "draft/ngram_text.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken::draft {

void NgramVotes::Add(Token token) noexcept {
  const auto end = tokens_.begin() + static_cast<std::ptrdiff_t>(n_tokens_);
  const auto found = std::find(tokens_.begin(), end, token);
  if (found != end) {
    ++counts_[static_cast<std::size_t>(found - tokens_.begin())];
    return;
  }
  tokens_[n_tokens_] = token;
  counts_[n_tokens_++] = 1;
}

NgramVotes::Winner NgramVotes::Best() const noexcept {
  if (n_tokens_ == 0) return {};
  // max_element gives the first of equals.
  const auto end = counts_.begin() + static_cast<std::ptrdiff_t>(n_tokens_);
  const auto best = std::max_element(counts_.begin(), end);
  return {tokens_[static_cast<std::size_t>(best - counts_.begin())], *best};
}

void NgramText::Begin(const Shape& shape, int max_tokens) {
  FORETOKEN_CHECK(1 <= shape.ngram_min && shape.ngram_min <= shape.ngram_max);
  FORETOKEN_CHECK(0 <= shape.n_likely && shape.n_likely <= NgramVotes::kMaxLikely);
  shape_ = shape;
  max_tokens_ = max_tokens;
  const auto room = static_cast<std::size_t>(max_tokens);
  tokens_.clear(), likely_.clear(), starts_.clear();
  tokens_.reserve(room);
  starts_.reserve(room);
  likely_.reserve(room * static_cast<std::size_t>(shape.n_likely));
  indices_.resize(static_cast<std::size_t>(shape.ngram_max - shape.ngram_min + 1));
  for (int n = shape.ngram_min; n <= shape.ngram_max; ++n)
    indices_[static_cast<std::size_t>(n - shape.ngram_min)].Begin(n, max_tokens);
  n_joined_ = 0;
}

void NgramText::Add(Token token, std::span<const Token> likely) noexcept {
  if (full()) return;
  tokens_.push_back(token);
  starts_.push_back(n_joined_ == 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape_.n_likely); ++i)
    likely_.push_back(i < likely.size() ? likely[i] : kNoToken);
  ++n_joined_;
  for (int n = shape_.ngram_min; n <= std::min(shape_.ngram_max, n_joined_); ++n)
    indices_[static_cast<std::size_t>(n - shape_.ngram_min)].Add(tokens_);
}

void NgramText::Count(std::span<const Token> ngram, NgramVotes& votes) const noexcept {
  if (tokens_.empty()) return;
  const NgramIndex& index = indices_[ngram.size() - static_cast<std::size_t>(shape_.ngram_min)];
  for (int end = index.Last(ngram, tokens_); end >= 0 && !votes.full(); end = index.Before(end)) {
    const int next = end + 1;
    if (next == size() || starts_[static_cast<std::size_t>(next)]) continue;  // nothing followed
    votes.NextOccurrence();
    const Token own = tokens_[static_cast<std::size_t>(next)];
    votes.Add(own);
    for (const Token token : likely(next))
      if (token != own && token >= 0) votes.Add(token);
  }
}

}  // namespace foretoken::draft
