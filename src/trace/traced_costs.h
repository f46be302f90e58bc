// SPDX-License-Identifier: Apache-2.0
// trace/traced_costs.h: the costs of the parts of a round, fitted to the passes of a recorded run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "foretoken/tools/replay.h"

namespace foretoken::trace {

// A monotone curve through medians: where it would fall, neighbours are averaged by weight.
// Straight lines between the points. Beyond the last point the line from the first to the last
// continues; before the first it is constant. Empty: 0 everywhere.
class RisingCurve {
 public:
  struct Point {
    double x = 0, y = 0, weight = 1;
  };
  RisingCurve() = default;
  explicit RisingCurve(std::vector<Point> points);  // ascending x
  double At(double x) const noexcept;

 private:
  std::vector<Point> points_;
};

// A pass of the trace and its work.
struct TracedPass {
  std::int64_t pass = 0;
  bool prefill = false;        // it has prompt rows
  int rows = 0, context = 0;   // context: the mean of its requests
  int asking = 0, drafts = 0;  // requests with drafts; drafts of the longest
  int verified = 0;            // logits that verdicts looked at: accepted + 1 each
  int committed = 0;
  double draft_us = 0, verify_us = 0, rest_us = 0;
  double us() const { return draft_us + verify_us + rest_us; }
};
std::vector<TracedPass> PassesOf(const RunTrace& trace);

class TracedCosts {
 public:
  TracedCosts(const RunTrace& trace, const std::vector<TracedPass>& passes);

  struct Cost {
    double draft_us = 0, verify_us = 0, rest_us = 0;
    double us() const { return draft_us + verify_us + rest_us; }
  };
  // The cost of a pass without prompt rows, from its fields rows, context, asking, drafts and verified.
  Cost Of(const TracedPass& pass) const noexcept;
  // The recorded time of all those passes over their fitted time; Of includes it.
  double recorded_over_fit() const { return scale_; }
  // All drafts were made by drafters that make those of a round in one pass, which costs the same
  // however many they are.
  bool drafts_at_once() const { return at_once_; }

 private:
  static void LeanOn(const RisingCurve& expected, std::vector<RisingCurve::Point>& points);
  void FitVerify(const RunTrace& trace, const std::vector<TracedPass>& passes);
  void FitDraft(const std::vector<TracedPass>& passes);
  void FitRest(const std::vector<TracedPass>& passes);

  // What costs as much as one draft.
  int Units(int drafts) const noexcept { return at_once_ ? std::min(drafts, 1) : drafts; }

  bool at_once_ = false;
  RisingCurve verify_, rest_;
  std::map<int, RisingCurve> draft_;  // by requests that ask together
  // Microseconds for each position of context beyond middle_: of a pass, of a draft.
  double verify_slope_ = 0, draft_slope_ = 0, middle_ = 0;
  double scale_ = 1;
};

}  // namespace foretoken::trace
