// SPDX-License-Identifier: Apache-2.0
// foretoken/draft_options.h: what a caller that runs rounds step by step wants from their drafts.
#pragma once

#include <optional>

namespace foretoken {

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

}  // namespace foretoken
