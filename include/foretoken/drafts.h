// SPDX-License-Identifier: Apache-2.0
// foretoken/drafts.h: the drafts of a round, as a caller that runs rounds step by step asks for them
// and gets them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "foretoken/token_rows.h"

namespace foretoken {

inline constexpr int kMaxDraft = 64;  // drafts of a round, whatever is asked for

struct DraftOptions {
  // Number of drafts for each request, instead of the draft-length controller's choice. There are
  // fewer where the drafter has no more, where the text ends, and beyond the request's
  // num_speculative_tokens. [0, 64]
  std::optional<int> num_steps = {};
  // Also return the distribution that each draft was drawn from, after the drafter's sampling
  // parameters. There is none where drafts were certain.
  bool distributions = false;
  // Also return the drafter's logits before any processing. Models and heads have them.
  bool logits = false;
};

struct Drafts {
  std::vector<std::int32_t> tokens;  // empty: the round decodes plainly, or prefills
  // [tokens]: the probability of each in the distribution that it was drawn from; empty if all were
  // certain.
  std::vector<float> probabilities;
  // [tokens, vocabulary_size], if DraftOptions asks for them.
  std::vector<float> distributions, logits;
  int vocabulary_size = 0;  // numbers of a row: TokenRows(logits, vocabulary_size)
};

// Drafts as views; the function that returns them says how long they are valid.
struct DraftsView {
  std::span<const std::int32_t> tokens;
  std::span<const float> probabilities;
  TokenRows distributions, logits;
};

}  // namespace foretoken
