// SPDX-License-Identifier: Apache-2.0
#include "foretoken/stats.h"

#include <algorithm>

namespace foretoken {
namespace {

void AddTo(auto& sum, const auto& other) {
  sum += other;
}
void AddTo(std::vector<std::int64_t>& sum, const std::vector<std::int64_t>& other) {
  sum.resize(std::max(sum.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) sum[i] += other[i];
}

}  // namespace

void SpeculationStats::Add(const SpeculationStats& other) {
  VisitSums([&](auto member) { AddTo(this->*member, other.*member); });
}

}  // namespace foretoken
