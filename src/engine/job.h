// SPDX-License-Identifier: Apache-2.0
// engine/job.h: a request from its arrival to its result.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "foretoken/engine.h"
#include "grammar/grammar.h"

namespace foretoken::engine {

struct Job {
  Ticket ticket = 0;
  Request request;
  std::vector<Token> prompt;
  OnRound on_round;
  std::shared_ptr<const grammar::Grammar> grammar;
  bool in_batch = false;  // all that run beside it are known and nobody waits for one of them
  bool cancelled = false;
  bool paused = false;                   // takes no part in steps
  SeqId seq = -1;                        // while it runs
  std::optional<Completion> completion;  // once it has ended
  std::optional<Error> error = {};       // why it ends before its time
  Error no_memory = {};                  // made beforehand, for when there is none
};

}  // namespace foretoken::engine
