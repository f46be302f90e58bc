// SPDX-License-Identifier: Apache-2.0
// engine/sequence.h: one running request.
#pragma once

#include <vector>

#include "engine/emitter.h"
#include "engine/job.h"
#include "foretoken/engine.h"
#include "sampling/sampler.h"
#include "verify/verifier.h"

namespace foretoken::engine {

struct Sequence {
  Job* job = nullptr;
  sampling::Sampler sampler;  // its text is the sequence's: prompt and committed tokens
  Emitter emitter;
  const verify::Verifier* verifier = nullptr;
  std::vector<int> drafters;    // that may draft for it; empty: it decodes plainly
  int most_drafts = 0;          // of a round, whatever the controller says
  int least_drafts = 1;         // of a round that has any: shorter drafts are not made or not sent
  bool follows_drafts = false;  // other drafts would give another text (of the same distribution
                                // where the strategy is lossless)
  bool drafts_first = false;    // its first token may be drafted
  int n_likely = 0;             // of the target's best tokens, that its drafters want to see
  int first_likely = 0;         // row of this step's in the engine's table
  int reached = 0;              // positions that the target's cache has held, given back or not
  bool preempted = false;       // it gave its blocks back and waits for others
  int passed_over = 0;          // passes since its prompt got rows
  Completion completion;

  const Request& request() const { return job->request; }
  bool drafts() const { return !drafters.empty(); }
};

}  // namespace foretoken::engine
