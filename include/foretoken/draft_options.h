// SPDX-License-Identifier: Apache-2.0
// foretoken/draft_options.h: what a caller that moves rounds itself wants of their drafts.
#pragma once

#include <optional>

namespace foretoken {

struct DraftOptions {
  // Drafts for each request, in place of the draft-length controller's choice; fewer where the
  // drafter knows no more, where the text ends, and beyond the request's num_speculative_tokens.
  // [0, 64]
  std::optional<int> num_steps = {};
  // The distribution that each draft was drawn from: processed by the drafter's sampling
  // parameters. There is none where drafts were certain.
  bool distributions = false;
  // The drafter's logits before any processing, where it computes any: models and heads do.
  bool logits = false;
};

}  // namespace foretoken
