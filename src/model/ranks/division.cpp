// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/division.h"

#include <algorithm>

namespace foretoken::model {

Division::Division(int rank, const std::vector<int>& speeds) : rank_(rank), sums_{0} {
  for (const int speed : speeds) sums_.push_back(sums_.back() + speed);
}

OutputRange Division::Of(int rank, int n, int unit) const noexcept {
  const std::int64_t units = (n + unit - 1) / unit;
  const auto at = [&](int r) {
    const auto first = units * sums_[static_cast<std::size_t>(r)] / sums_.back();
    return static_cast<int>(std::min<std::int64_t>(first * unit, n));
  };
  return {at(rank), at(rank + 1)};
}

std::int64_t Division::PartOf(std::int64_t bytes) const noexcept {
  const auto rank = static_cast<std::size_t>(rank_);
  const auto part = static_cast<double>(sums_[rank + 1] - sums_[rank]);
  return static_cast<std::int64_t>(static_cast<double>(bytes) * part /
                                   static_cast<double>(sums_.back()));
}

}  // namespace foretoken::model
