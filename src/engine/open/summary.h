// SPDX-License-Identifier: Apache-2.0
// engine/open/summary.h: what an engine tells of itself (EngineSummary).
#pragma once

#include <cstdint>
#include <span>

#include "engine/open/opened.h"
#include "engine/requests/speculation_rules.h"
#include "loader/drafts/draft_files.h"
#include "loader/drafts/drafter_set.h"
#include "loader/memory_plan.h"
#include "loader/model_part.h"

namespace foretoken::engine {

// The parts of an engine that its summary tells of.
struct SummarySources {
  const loader::ModelPart& target;
  const loader::DraftFiles& files;
  const loader::MemoryPlan& memory;
  std::span<const std::int64_t> draft_bytes;  // the weights of each file's drafter, as loaded
  std::int64_t scratch_bytes;                 // of all models
  const loader::DrafterSet& drafters;
  const SpeculationRules& rules;
};

// Fills opened.summary, whose notices stay and get more.
void Summarise(Opened& opened, const SummarySources& from);

}  // namespace foretoken::engine
