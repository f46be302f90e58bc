// SPDX-License-Identifier: Apache-2.0
// engine/step/proposals.h: what was drafted for the sequences of a pass, or why nothing was.
#pragma once

#include <optional>
#include <vector>

#include "foretoken/stats.h"
#include "round/proposal.h"

namespace foretoken::engine {

struct DraftedSequence {
  round::Proposal proposal;  // empty: plain decoding, or only prefill
  int drafter = -1;          // whose proposal it is
  bool given = false;        // it is the caller's
  int asked = 0;             // drafts that may come, for which there are blocks
  int wanted = 0;            // drafts, by whoever chose the length
  int withheld = 0;          // drafts that were made and are too few to be sent
  PlainReason why_plain = PlainReason::kNoDraft;  // where there are no drafts
  std::optional<ProbeKind> probe;                 // the round is to measure something

  int length() const { return proposal.length(); }
};

struct Proposals {
  std::vector<DraftedSequence> entries;  // as in the plan
  int n_decoding = 0;                    // sequences that could have drafts
  double predicted_us = 0;               // of drafting, by what was known before
  double control_us = 0;                 // that choosing the lengths took
};

// What a caller wants of drafts, in place of the draft-length controller.
struct DraftWants {
  std::optional<int> length;  // of each draft at most
  bool logits = false;        // the drafter's, of each draft
};

}  // namespace foretoken::engine
