// SPDX-License-Identifier: Apache-2.0
// calibrate/initial_costs.h: what passes and drafts cost before the first of them has run. The
// costs come from the sizes of the files, from a profile, from what two engines like this one have learned
// alike, or from measurements that take less than half a second, or about six passes of the model where those
// take longer. What one engine has learned bounds the measurements.
#pragma once

#include <string>
#include <vector>

#include "calibrate/kept_costs.h"
#include "calibrate/subject.h"
#include "draft_length/round_costs.h"
#include "foretoken/options.h"
#include "foretoken/tools/measure.h"
#include "loader/drafts/drafter_set.h"

namespace foretoken::calibrate {

struct CostsToLearn {
  draft_length::RoundCosts& costs;        // learned from every pass
  draft_length::RoundCosts& fixed_costs;  // for draft lengths that no clock may change
  std::vector<std::string>& notices;      // for a profile that does not fit this machine
};

struct CostSources {
  Subject subject;
  const EngineOptions& options;
  std::int64_t target_bytes = 0;  // of the target's file
  const loader::DrafterSet& drafters;
  bool records = false;                  // a trace wants the costs of passes too
  draft_length::LearnedCosts kept = {};  // by engines like this one
  bool kept_agree = false;               // two of them have learned the same
};

// Whether this engine plans with measured costs, so that what it learns is worth keeping.
bool PlansWithCosts(const SpeculativeOptions& options, const loader::DrafterSet& drafters);

// The file of what engines like this one have learned, in the folder of EngineOptions.repack_cache; none
// where that is off, and for several ranks.
CostFile CostFileFor(const EngineOptions& options, const std::string& isa,
                     const loader::DrafterSet& drafters);

// Returns the passes that were measured, which are none where nothing needs them. Errors: a profile
// that cannot be read.
[[nodiscard]] Result<std::vector<PassCost>> LearnInitialCosts(const CostSources& sources,
                                                              const CostsToLearn& known);

}  // namespace foretoken::calibrate
