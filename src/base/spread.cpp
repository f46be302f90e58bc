// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "foretoken/tools/measure.h"

namespace foretoken {

Spread SpreadOf(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  return {(values[(n - 1) / 2] + values[n / 2]) / 2, values.front(), values.back()};
}

}  // namespace foretoken
