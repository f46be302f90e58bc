// SPDX-License-Identifier: Apache-2.0
#include "draft/lookup/ngram_text.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken::draft {

void NgramVotes::Add(Token token) noexcept {
  const auto end = tokens_.begin() + static_cast<std::ptrdiff_t>(n_tokens_);
  const auto found = std::find(tokens_.begin(), end, token);
  if (found != end) {
    const auto at = static_cast<std::size_t>(found - tokens_.begin());
    ++counts_[at];
    longest_[at] = std::max(longest_[at], static_cast<std::int16_t>(matched_));
    return;
  }
  tokens_[n_tokens_] = token;
  longest_[n_tokens_] = static_cast<std::int16_t>(matched_);
  counts_[n_tokens_++] = 1;
}

NgramVotes::Winner NgramVotes::Best() const noexcept {
  Winner best;
  for (std::size_t i = 0; i < n_tokens_; ++i)
    if (longest_[i] > best.matched || (longest_[i] == best.matched && counts_[i] > best.count))
      best = {tokens_[i], counts_[i], longest_[i]};
  return best;
}

void NgramText::Begin(const Shape& shape, int max_tokens) {
  FORETOKEN_CHECK(1 <= shape.ngram_min && shape.ngram_min <= shape.ngram_max);
  FORETOKEN_CHECK(0 <= shape.n_likely && shape.n_likely <= NgramVotes::kMaxLikely);
  shape_ = shape;
  max_tokens_ = 0;  // until all memory is taken
  const auto room = static_cast<std::size_t>(max_tokens);
  tokens_.clear(), salts_.clear(), likely_.clear(), starts_.clear();
  tokens_.reserve(room);
  salts_.reserve(room);
  starts_.reserve(room);
  likely_.reserve(room * static_cast<std::size_t>(shape.n_likely));
  indices_.resize(static_cast<std::size_t>(shape.ngram_max - shape.ngram_min + 1));
  for (int n = shape.ngram_min; n <= shape.ngram_max; ++n)
    indices_[static_cast<std::size_t>(n - shape.ngram_min)].Begin(n, max_tokens);
  StartText();
  max_tokens_ = max_tokens;
}

void NgramText::Add(Token token, std::span<const Token> likely) noexcept {
  if (full()) return;
  tokens_.push_back(token);
  salts_.push_back(salt_);
  starts_.push_back(n_joined_ == 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape_.n_likely); ++i)
    likely_.push_back(i < likely.size() ? likely[i] : kNoToken);
  ++n_joined_;
  for (int n = shape_.ngram_min; n <= std::min(shape_.ngram_max, n_joined_); ++n)
    indices_[static_cast<std::size_t>(n - shape_.ngram_min)].Add({tokens_, salts_});
}

// Collects the votes of the occurrence of the last n tokens that ends at `end`.
int NgramText::Matched(std::span<const Token> context, int n, int end) const noexcept {
  const int most = static_cast<int>(context.size());
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  while (n < most && end >= n && !starts_[at(end - n + 1)] &&
         tokens_[at(end - n)] == context[at(most - 1 - n)])
    ++n;
  return n;
}

void NgramText::Count(std::span<const Token> context, int n, NgramVotes& votes,
                      SaltId salt) const noexcept {
  if (tokens_.empty()) return;
  const auto ngram = context.last(static_cast<std::size_t>(n));
  const NgramIndex& index = indices_[static_cast<std::size_t>(n - shape_.ngram_min)];
  for (int end = index.Last(ngram, salt, {tokens_, salts_}); end >= 0 && !votes.full();
       end = index.Before(end)) {
    const int next = end + 1;
    if (next == size() || starts_[static_cast<std::size_t>(next)]) continue;  // no token follows
    votes.NextOccurrence(Matched(context, n, end));
    const Token own = tokens_[static_cast<std::size_t>(next)];
    votes.Add(own);
    for (const Token token : likely(next))
      if (token != own && token >= 0) votes.Add(token);
  }
}

}  // namespace foretoken::draft
