// SPDX-License-Identifier: Apache-2.0
// engine/step/pass_plan.h: which sequences take part in a pass, and how many rows each has.
#pragma once

#include <algorithm>
#include <vector>

#include "base/ids.h"

namespace foretoken::engine {

struct PlannedSequence {
  SeqId seq = 0;
  int n_feed = 0;        // committed tokens that the cache lacks and that this pass reads
  bool decodes = false;  // the pass reaches the newest token, so a verdict follows
  bool prefill = false;  // it reads the prompt, or once more a text that was preempted
  bool again = false;    // it reads a text that was preempted
  bool may_draft =
      false;           // it decodes, or its first draft is verified with the prompt; none is given
  int max_draft = 0;   // tokens that fit the request, the rows and the blocks
  bool mixed = false;  // max_draft is smaller because the pass reads a prompt
};

struct PassPlan {
  std::vector<PlannedSequence> entries;
  double us = 0;  // that planning took

  bool empty() const { return entries.empty(); }
  std::size_t size() const { return entries.size(); }
  bool prefills() const {
    return std::any_of(entries.begin(), entries.end(), [](const auto& e) { return e.prefill; });
  }
};

}  // namespace foretoken::engine
