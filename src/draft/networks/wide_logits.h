// SPDX-License-Identifier: Apache-2.0
// draft/networks/wide_logits.h: a drafter's logits in the target's vocabulary. Tokens that the drafter's
// vocabulary does not share, or that its output head lacks, cannot be drafted (-inf), which costs
// acceptance but never exactness.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/ids.h"
#include "draft/networks/shared_tokens.h"

namespace foretoken::draft {

class WideLogits {
 public:
  // ids: the token of each column in the drafter's vocabulary; empty: column i is its token i.
  WideLogits(const SharedTokens& shared, std::span<const Token> ids) {
    if (ids.empty() && shared.all()) return;
    wide_ = AlignedBuffer<float>(static_cast<std::size_t>(shared.target));
    std::fill_n(wide_.data(), shared.target, kNever);
    if (shared.map != nullptr) {
      AddPairs(*shared.map, ids);
      return;
    }
    if (ids.empty()) {
      n_copied_ = std::min(shared.target, shared.drafter);
      never_ = shared.differing;
    }
    for (std::size_t i = 0; i < ids.size(); ++i)
      if (shared.Has(ids[i])) columns_.emplace_back(i, ids[i]);
  }

  // [vocabulary of the target]; valid until the next call.
  const float* Of(const float* logits) noexcept {
    if (wide_.size() == 0) return logits;
    std::copy_n(logits, n_copied_, wide_.data());
    for (const Token id : never_) wide_[static_cast<std::size_t>(id)] = kNever;
    for (const auto& [column, id] : columns_) wide_[static_cast<std::size_t>(id)] = logits[column];
    return wide_.data();
  }

 private:
  // ids: ascending.
  void AddPairs(const TokenMap& map, std::span<const Token> ids) {
    for (const TokenMap::Pair& pair : map.pairs) {
      const auto id = std::lower_bound(ids.begin(), ids.end(), pair.draft);
      if (ids.empty())
        columns_.emplace_back(static_cast<std::size_t>(pair.draft), pair.target);
      else if (id != ids.end() && *id == pair.draft)
        columns_.emplace_back(static_cast<std::size_t>(id - ids.begin()), pair.target);
    }
  }

  static constexpr float kNever = -std::numeric_limits<float>::infinity();
  int n_copied_ = 0;                                    // columns that keep their place
  std::vector<Token> never_;                            // those among them that are not shared
  std::vector<std::pair<std::size_t, Token>> columns_;  // others: column and token
  AlignedBuffer<float> wide_;
};

}  // namespace foretoken::draft
