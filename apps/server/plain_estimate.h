// SPDX-License-Identifier: Apache-2.0
// server/plain_estimate.h: what plain decoding would cost right now: milliseconds of a pass with
// one row for each of n requests.
//
// Begun with short plain runs of the engine itself, kept at the machine's pace by the steps in
// which nobody drafted (the cost model takes some now and then). Speed-ups that are told live are
// estimates against this; `foretoken bench` measures.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

namespace foretoken::server {

class PlainEstimate {
 public:
  // Measured steps: requests that decoded together, ascending, and milliseconds of a step.
  void Start(std::vector<std::pair<int, double>> points) { points_ = std::move(points); }
  bool known() const { return !points_.empty(); }

  // A step in which n requests decoded without drafts.
  void See(int n, double ms) {
    if (!known() || !(ms > 0)) return;
    const double ratio = ms / AtStart(n);
    pace_ += kWeight * (std::clamp(ratio, 0.2, 20.0) - pace_);
  }

  // REQUIRES: known.
  double StepMs(int n) const { return pace_ * AtStart(n); }

 private:
  static constexpr double kWeight = 0.05;

  // On the line through the measured points around n, or through the last two.
  double AtStart(int n) const {
    if (points_.size() == 1) return points_.front().second;
    std::size_t i = 1;
    while (i + 1 < points_.size() && points_[i].first < n) ++i;
    const auto& [n0, ms0] = points_[i - 1];
    const auto& [n1, ms1] = points_[i];
    const double ms = ms0 + (ms1 - ms0) * (n - n0) / (n1 - n0);
    return std::max(ms, 1e-6);
  }

  std::vector<std::pair<int, double>> points_;
  double pace_ = 1;  // of the machine now, over the measured one
};

}  // namespace foretoken::server
