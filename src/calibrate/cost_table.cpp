// SPDX-License-Identifier: Apache-2.0
#include "calibrate/cost_table.h"

#include <algorithm>

#include "base/check.h"

namespace foretoken::calibrate {
namespace {

std::vector<int> Ascending(std::span<const PassCost> costs, int PassCost::*axis) {
  std::vector<int> points;
  for (const PassCost& cost : costs) points.push_back(cost.*axis);
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

std::size_t IndexOf(const std::vector<int>& points, int x) {
  return static_cast<std::size_t>(std::lower_bound(points.begin(), points.end(), x) -
                                  points.begin());
}

bool Within(const std::vector<int>& points, int x) {
  return x >= points.front() && x <= points.back();
}

// The value at x of the lines through (points[i], value(i)).
template <typename F>
double Along(const std::vector<int>& points, int x, F&& value) noexcept {
  if (x <= points.front() || points.size() == 1) return value(std::size_t{0});
  const std::size_t right = std::min(IndexOf(points, x), points.size() - 1), left = right - 1;
  const double a = value(left), b = value(right);
  const double at = static_cast<double>(x - points[left]) / (points[right] - points[left]);
  if (at > 1) return b + (at - 1) * std::max(0.0, b - a);
  return a + at * (b - a);
}

}  // namespace

CostTable::CostTable(std::span<const PassCost> costs)
    : rows_(Ascending(costs, &PassCost::rows)),
      contexts_(Ascending(costs, &PassCost::context)),
      us_(rows_.size() * contexts_.size(), -1.0) {
  FORETOKEN_CHECK(!costs.empty() && costs.size() == us_.size());
  for (const PassCost& cost : costs) {
    double& us = us_[IndexOf(contexts_, cost.context) * rows_.size() + IndexOf(rows_, cost.rows)];
    FORETOKEN_CHECK(us < 0 && cost.us.median >= 0);
    us = cost.us.median;
  }
}

double CostTable::AtRows(int rows, std::size_t context) const noexcept {
  const double* us = us_.data() + context * rows_.size();
  return Along(rows_, rows, [us](std::size_t i) { return us[i]; });
}

CostTable::Cost CostTable::At(int rows, int context) const noexcept {
  const double us = Along(contexts_, context, [&](std::size_t i) { return AtRows(rows, i); });
  return {us, Within(rows_, rows) && Within(contexts_, context)};
}

}  // namespace foretoken::calibrate
