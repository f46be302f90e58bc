// SPDX-License-Identifier: Apache-2.0
// calibrate/measurer.h: measures what an engine's own models and its host cost
// (foretoken/tools/measure.h). Each repeat runs all passes in turn, so that a slow moment of the
// machine affects all of them alike.
#pragma once

#include "calibrate/subject.h"
#include "draft/drafter.h"
#include "foretoken/tools/measure.h"
#include "verify/verifier.h"

namespace foretoken::calibrate {

struct MeasuredParts {
  Subject subject;
  draft::Drafter* drafter = nullptr;  // the default one; null: nothing drafts
  int draft_context = 0;              // positions that its model can have; 0: it has no model
  int prefill_rows = 0;               // of a pass that reads a prompt
  const verify::Verifier& verifier;   // of requests with the options' sampling
};

// Errors: kInvalidArgument (rows that no pass of this engine can have, ...), kTooLarge (the context
// does not hold them).
[[nodiscard]] Status CheckMeasure(const MeasureOptions& options, const Subject& subject);
// REQUIRES: CheckMeasure accepted the options.
Measurements Measure(const MeasureOptions& options, const MeasuredParts& parts);

}  // namespace foretoken::calibrate
