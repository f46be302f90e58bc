// SPDX-License-Identifier: Apache-2.0
#include "draft_length/table_costs.h"

#include <algorithm>
#include <array>

namespace foretoken::draft_length {
namespace {

constexpr double kPassUs = 1000;
// The share of a pass that each further row costs. Where the weights lie in the caches, rows are
// limited by arithmetic.
constexpr double kCachedRow = 0.2, kMemoryRow = 0.12;
constexpr std::int64_t kCachedBytes = 64'000'000;
// The share of a pass that a draft costs: a part that is the same for all drafters, and a part by
// bytes.
constexpr double kLeastDraft = 0.05, kHeadDraft = 0.3;
constexpr int kMostRows = 65;

}  // namespace

void StartWithTable(RoundCosts& costs, std::int64_t target_bytes,
                    std::span<const TableDrafter> drafters, const TableExperts& experts) {
  const double row = target_bytes < kCachedBytes ? kCachedRow : kMemoryRow;
  const double expert_share = static_cast<double>(experts.expert_bytes) /
                              static_cast<double>(std::max<std::int64_t>(1, target_bytes));
  const ExpertCosts independent(experts.shape, expert_share);
  // The cost of experts bends, so it needs more points.
  const bool bends = experts.shape.layers != 0;
  std::array<PassCost, 6> passes;
  std::size_t n = 0;
  for (const int rows : {1, 2, 5, 9, 17, kMostRows}) {
    if (!bends && rows > 2 && rows < kMostRows) continue;
    const double more = expert_share * (independent.Independent(rows) - independent.Independent(1));
    passes[n++] = {rows, 0, {.median = kPassUs * (1 + row * (rows - 1) + more)}};
  }
  costs.Start(std::span(passes).first(n));
  for (const TableDrafter& d : drafters) {
    const double share =
        static_cast<double>(d.bytes) / static_cast<double>(std::max<std::int64_t>(1, target_bytes));
    costs.StartDrafter(d.drafter, kPassUs * (d.head ? kHeadDraft : kLeastDraft + share), 0, 0);
  }
}

}  // namespace foretoken::draft_length
