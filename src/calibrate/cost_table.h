// SPDX-License-Identifier: Apache-2.0
// calibrate/cost_table.h: the cost of a pass by its rows and its context, between the measured
// points and beyond them.
#pragma once

#include <span>
#include <vector>

#include "foretoken/tools/measure.h"

namespace foretoken::calibrate {

class CostTable {
 public:
  // The medians of `costs`, in any order. REQUIRES: a full grid, every number of rows once with
  // every context; at least one point.
  explicit CostTable(std::span<const PassCost> costs);

  struct Cost {
    double us = 0;
    bool measured = false;  // within the grid, so interpolated; else extrapolated
  };
  // Bilinear between the four points around. Beyond the last point of an axis the line of its last
  // two points continues, but never falls. Before the first point, and for an axis with one point,
  // it is constant.
  Cost At(int rows, int context) const noexcept;

  std::span<const int> rows() const { return rows_; }
  std::span<const int> contexts() const { return contexts_; }

 private:
  double AtRows(int rows, std::size_t context) const noexcept;

  std::vector<int> rows_, contexts_;  // ascending
  std::vector<double> us_;            // [contexts, rows]
};

}  // namespace foretoken::calibrate
