// SPDX-License-Identifier: Apache-2.0
// foretoken/tools/measure.h: what an engine's passes cost on this machine. These numbers decide whether
// speculation pays, and how far to draft.
//
//   auto costs = engine->Measure({.rows = {1, 2, 4, 8}, .contexts = {0, 1024}});
//   costs->target.front().us.median;  // microseconds of a pass of one row
#pragma once

#include <functional>
#include <vector>

#include "foretoken/request.h"

namespace foretoken {

// Repeated measurements of one thing. For an even number of values the median is the mean of the
// middle two.
struct Spread {
  double median = 0, least = 0, most = 0;
};
// All 0 if there are no values.
Spread SpreadOf(std::vector<double> values);

struct MeasureOptions {
  std::vector<int> rows = {1, 2, 4, 8, 16};  // of a target pass; each row has logits
  std::vector<int> contexts = {0};           // positions that the cache holds before the pass
  int repeats = 9;
  SamplingParameters sampling = {};              // how drafts are drawn and verified meanwhile
  std::function<void(double)> on_progress = {};  // gets the fraction that is complete
};

struct PassCost {
  int rows = 0, context = 0;
  Spread us;
  // Where the target has experts: the distinct experts that the rows used, added over the layers,
  // and the bytes of weights that the pass read. The tokens of measured passes are random.
  std::int64_t distinct_experts = 0, read_bytes = 0;
};

// The time of a step beside the arithmetic of its passes. A step is one target pass and the
// verification of its K drafts; a draft step is one more draft.
struct StepOverhead {
  double dispatch_us = 0;  // handing a pass to all threads and waiting for the last
  double barrier_us = 0;   // one barrier of all threads within it
  int target_barriers = 0, draft_barriers = 0;  // in a pass; 0 if it runs on one thread
  int verified_rows = 0;                        // K + 1
  double verify_us = 0;                         // verifying them, with all drafts accepted
  double draw_us = 0;                           // a token from one row of logits
  double target_us() const { return BarriersUs(target_barriers) + verify_us; }
  double draft_us() const { return BarriersUs(draft_barriers) + draw_us; }

 private:
  double BarriersUs(int barriers) const {
    return barriers == 0 ? 0 : dispatch_us + barriers * barrier_us;
  }
};

struct Measurements {
  Spread memory_gb_per_s;        // all threads read a buffer larger than the caches
  std::vector<PassCost> target;  // each context with each row count, both ascending
  // One more draft for `rows` sequences together, the draw included: the mean over the K drafts of
  // a round. Contexts that the drafter cannot reach, or where it has no drafts, are left out; empty
  // if nothing drafts.
  std::vector<PassCost> draft;
  int prompt_rows = 0;  // rows of the pass that measured prefill
  Spread prompt_tokens_per_second;
  StepOverhead overhead;

  // Null if that was not measured.
  const PassCost* TargetCost(int rows, int context) const;
  const PassCost* DraftCost(int rows, int context) const;
};

}  // namespace foretoken
