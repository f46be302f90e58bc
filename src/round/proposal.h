// SPDX-License-Identifier: Apache-2.0
// round/proposal.h: what a drafter proposes for one sequence in one round: a chain of tokens and
// the distributions that they were drawn from.
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace foretoken::round {

// A view; the drafter owns the memory until its next Propose. Empty: the round decodes plainly.
struct Proposal {
  std::span<const Token> tokens;  // d_1 .. d_m
  // [m, q_stride]: row i is the distribution that d_{i+1} was drawn from, normalised over the
  // vocabulary.
  const float* q = nullptr;
  std::int64_t q_stride = 0;
  const float* raw_logits = nullptr;  // [m]: the drafter's logit of each draft, before processing
  const float* logits = nullptr;      // [m, q_stride]: all of them, if they were asked for
  // How strongly the text supports the drafts, 0 to 3. The acceptance of each class is learned
  // separately. Known before the first draft was chosen.
  int evidence = 0;

  // `n` drafts from the `first` one on.
  Proposal Part(int first, int n) const {
    Proposal part = *this;
    part.tokens = tokens.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n));
    if (q != nullptr) part.q = Distribution(first);
    if (raw_logits != nullptr) part.raw_logits += first;
    if (logits != nullptr) part.logits += first * q_stride;
    return part;
  }

  int length() const { return static_cast<int>(tokens.size()); }
  // Without q each draft is certain: its distribution is one-hot.
  const float* Distribution(int i) const { return q == nullptr ? nullptr : q + i * q_stride; }
};

}  // namespace foretoken::round
