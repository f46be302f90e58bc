// SPDX-License-Identifier: Apache-2.0
// engine/open/initial_costs.h: what passes and drafts cost before the first of them has run: by the
// sizes of the files, by a profile, or measured in less than half a second.
#pragma once

#include "calibrate/subject.h"
#include "engine/open/opened.h"
#include "engine/recorder.h"
#include "engine/requests/drafter_set.h"
#include "engine/step/estimates.h"

namespace foretoken::engine {

calibrate::Subject SubjectOf(Opened& opened);

// Errors: a profile that cannot be read. One that does not hold here is a notice.
[[nodiscard]] Status LearnInitialCosts(Opened& opened, const DrafterSet& drafters,
                                       Estimates& estimates, Recorder& recorder);

}  // namespace foretoken::engine
