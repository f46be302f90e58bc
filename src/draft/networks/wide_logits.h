// SPDX-License-Identifier: Apache-2.0
// draft/networks/wide_logits.h: a drafter's logits in the target's vocabulary. Tokens that the drafter's
// vocabulary does not share, or that its output head lacks, cannot be drafted (-inf), which costs
// acceptance but never exactness.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
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
      if (shared.Has(ids[i])) Add(i, ids[i]);
  }

  // [vocabulary of the target]; valid until the next call.
  const float* Of(const float* logits) noexcept {
    if (wide_.size() == 0) return logits;
    std::copy_n(logits, n_copied_, wide_.data());
    for (const Token id : never_) wide_[static_cast<std::size_t>(id)] = kNever;
    for (const Run& run : runs_) std::copy_n(logits + run.column, run.n, wide_.data() + run.token);
    return wide_.data();
  }

 private:
  // So many columns, and the tokens of the target's that they stand for.
  struct Run {
    std::size_t column;
    Token token;
    int n;
  };

  void Add(std::size_t column, Token token) {
    const bool goes_on = !runs_.empty() &&
                         runs_.back().column + static_cast<std::size_t>(runs_.back().n) == column &&
                         runs_.back().token + runs_.back().n == token;
    if (goes_on)
      ++runs_.back().n;
    else
      runs_.push_back({column, token, 1});
  }

  // ids: ascending.
  void AddPairs(const TokenMap& map, std::span<const Token> ids) {
    for (const TokenMap::Pair& pair : map.pairs) {
      const auto id = std::lower_bound(ids.begin(), ids.end(), pair.draft);
      if (ids.empty())
        Add(static_cast<std::size_t>(pair.draft), pair.target);
      else if (id != ids.end() && *id == pair.draft)
        Add(static_cast<std::size_t>(id - ids.begin()), pair.target);
    }
  }

  static constexpr float kNever = -std::numeric_limits<float>::infinity();
  int n_copied_ = 0;          // columns that keep their place
  std::vector<Token> never_;  // those among them that are not shared
  std::vector<Run> runs_;     // the others
  AlignedBuffer<float> wide_;
};

}  // namespace foretoken::draft
