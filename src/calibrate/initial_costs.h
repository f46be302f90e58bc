// SPDX-License-Identifier: Apache-2.0
// calibrate/initial_costs.h: what passes and drafts cost before the first of them has run. The
// costs come from the sizes of the files, from a profile, or from measurements that take less than
// half a second, or about six passes of the model where those take longer.
#pragma once

#include <string>
#include <vector>

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
  bool records = false;  // a trace wants the costs of passes too
};

// Returns the passes that were measured, which are none where nothing needs them. Errors: a profile
// that cannot be read.
[[nodiscard]] Result<std::vector<PassCost>> LearnInitialCosts(const CostSources& sources,
                                                              const CostsToLearn& known);

}  // namespace foretoken::calibrate
