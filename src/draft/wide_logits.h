// SPDX-License-Identifier: Apache-2.0
// draft/wide_logits.h: a drafter's logits in the target's vocabulary, where the drafter's output
// head knows only some of its tokens: the others cannot be drafted (-inf), which costs acceptance
// and never exactness.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "base/aligned_buffer.h"
#include "base/ids.h"

namespace foretoken::draft {

class WideLogits {
 public:
  // ids: the token of each column; empty: column i is token i. They must outlive this.
  WideLogits(int vocabulary, std::span<const Token> ids) : ids_(ids) {
    if (ids.empty()) return;
    wide_ = AlignedBuffer<float>(static_cast<std::size_t>(vocabulary));
    std::fill_n(wide_.data(), vocabulary, -std::numeric_limits<float>::infinity());
  }

  // [vocabulary]; valid until the next call.
  const float* Of(const float* logits) noexcept {
    if (ids_.empty()) return logits;
    for (std::size_t i = 0; i < ids_.size(); ++i)
      wide_[static_cast<std::size_t>(ids_[i])] = logits[i];
    return wide_.data();
  }

 private:
  std::span<const Token> ids_;
  AlignedBuffer<float> wide_;
};

}  // namespace foretoken::draft
