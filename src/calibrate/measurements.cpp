// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "foretoken/tools/measure.h"

namespace foretoken {
namespace {

const PassCost* Find(const std::vector<PassCost>& costs, int rows, int context) {
  const auto found = std::find_if(costs.begin(), costs.end(), [&](const PassCost& cost) {
    return cost.rows == rows && cost.context == context;
  });
  return found == costs.end() ? nullptr : &*found;
}

}  // namespace

const PassCost* Measurements::TargetCost(int rows, int context) const {
  return Find(target, rows, context);
}

const PassCost* Measurements::DraftCost(int rows, int context) const {
  return Find(draft, rows, context);
}

}  // namespace foretoken
