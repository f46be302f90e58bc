// SPDX-License-Identifier: Apache-2.0
// server/routes/thought_budget.h: ends a thought that has taken its tokens.
#pragma once

#include <cstddef>

#include "calls/thought.h"
#include "foretoken/engine.h"

namespace foretoken::server {

struct ThoughtPlace {
  std::size_t prompt = 0;  // tokens before the answer
  bool begun = false;      // the answer begins within a thought; otherwise it may begin with one
};

// Forces the end mark where the answer's first thought has `budget` tokens. The engine must outlive
// it.
LogitsProcessor ThoughtBudget(const Engine& engine, const ThoughtMarks& marks, ThoughtPlace place,
                              int budget);

}  // namespace foretoken::server
