// SPDX-License-Identifier: Apache-2.0
// engine/step/pass_record.h: all that is known of a pass when it has been committed.
#pragma once

#include <chrono>

#include "engine/requests/sequence.h"
#include "engine/step/commit.h"
#include "engine/step/flat_pass.h"
#include "engine/step/pass_plan.h"
#include "engine/step/proposals.h"
#include "engine/step/verification.h"
#include "model/pass.h"

namespace foretoken::engine {

// What each part of the step made of it.
struct PassRecord {
  const PassPlan& plan;
  const Proposals& drafts;
  const FlatPass& pass;
  const Verdicts& verdicts;
  const Commits& commits;
  const model::PassResult& result;
  const Sequences& sequences;
};

// How long its parts took, in milliseconds.
struct PassTimes {
  double draft_ms = 0, verify_ms = 0;
  std::chrono::steady_clock::time_point passed;  // the target's pass had ended
};

}  // namespace foretoken::engine
