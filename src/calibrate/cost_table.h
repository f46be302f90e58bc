// SPDX-License-Identifier: Apache-2.0
// calibrate/cost_table.h: what a pass costs by its rows and its context, between the points where it
// was measured and beyond them.
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
    bool measured = false;  // within the grid, so interpolated; else continued beyond it
  };
  // Bilinear between the four points around. Beyond the last point of an axis the line of its last
  // two goes on, but never falls; before the first, and where an axis has one point, it is level.
  Cost At(int rows, int context) const noexcept;

  std::span<const int> rows() const { return rows_; }
  std::span<const int> contexts() const { return contexts_; }

 private:
  double AtRows(int rows, std::size_t context) const noexcept;

  std::vector<int> rows_, contexts_;  // ascending
  std::vector<double> us_;            // [contexts, rows]
};

}  // namespace foretoken::calibrate
