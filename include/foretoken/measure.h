// SPDX-License-Identifier: Apache-2.0
// foretoken/measure.h: what an engine's passes cost on this machine: the numbers that decide
// whether speculation pays, and how far to draft.
//
//   auto costs = engine->Measure({.rows = {1, 2, 4, 8}, .contexts = {0, 1024}});
//   costs->target.front().us.median;  // microseconds of a pass of one row
#pragma once

#include <functional>
#include <vector>

#include "foretoken/request.h"

namespace foretoken {

// Repeated readings of one thing. With an even number of them the median is the mean of the middle
// two.
struct Spread {
  double median = 0, least = 0, most = 0;
};
// All 0 where there are no values.
Spread SpreadOf(std::vector<double> values);

struct MeasureOptions {
  std::vector<int> rows = {1, 2, 4, 8, 16};  // of a target pass, each with its logits
  std::vector<int> contexts = {0};           // positions that the cache holds before the pass
  int repeats = 9;
  SamplingParameters sampling = {};              // how drafts are drawn and judged meanwhile
  std::function<void(double)> on_progress = {};  // gets the fraction that is done
};

struct PassCost {
  int rows = 0, context = 0;
  Spread us;
};

// What the processor does in a step beside the passes' arithmetic. A step is one target pass with
// the judging of its K drafts; a draft step is one more draft.
struct StepOverhead {
  double dispatch_us = 0;  // handing a pass to all threads and waiting for the last
  double barrier_us = 0;   // one meeting of all threads within it
  int target_barriers = 0, draft_barriers = 0;  // of a pass; 0 where it runs on one thread
  int judged_rows = 0;                          // K + 1
  double judge_us = 0;                          // of these, all drafts agreeing
  double draw_us = 0;                           // a token from one row of logits
  double target_us() const { return Meetings(target_barriers) + judge_us; }
  double draft_us() const { return Meetings(draft_barriers) + draw_us; }

 private:
  double Meetings(int barriers) const {
    return barriers == 0 ? 0 : dispatch_us + barriers * barrier_us;
  }
};

struct Measurements {
  Spread memory_gb_per_s;        // plain reading by all threads, a buffer larger than the caches
  std::vector<PassCost> target;  // each context with each number of rows, both ascending
  // One more draft for `rows` sequences together, the draw included: the mean over K drafts of a
  // round. Contexts that the drafter does not reach, or where it knows nothing, are left out; empty
  // where nothing drafts.
  std::vector<PassCost> draft;
  int prompt_rows = 0;  // of the pass by which reading a prompt was measured
  Spread prompt_tokens_per_second;
  StepOverhead overhead;

  // Null where that was not measured.
  const PassCost* TargetCost(int rows, int context) const;
  const PassCost* DraftCost(int rows, int context) const;
};

}  // namespace foretoken
