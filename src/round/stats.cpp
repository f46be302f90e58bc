// SPDX-License-Identifier: Apache-2.0
#include "foretoken/stats.h"

#include <algorithm>

namespace foretoken {
namespace {

void AddTo(std::vector<std::int64_t>& sum, const std::vector<std::int64_t>& other) {
  sum.resize(std::max(sum.size(), other.size()));
  for (std::size_t i = 0; i < other.size(); ++i) sum[i] += other[i];
}

}  // namespace

void SpeculationStats::Add(const SpeculationStats& o) {
  rounds += o.rounds, draft_rounds += o.draft_rounds, drafted += o.drafted, accepted += o.accepted;
  accepted_relaxed += o.accepted_relaxed;
  recovered += o.recovered, bonus += o.bonus, plain += o.plain, emitted += o.emitted,
      rolled_back += o.rolled_back;
  draft_forwards += o.draft_forwards, target_forwards += o.target_forwards;
  AddTo(drafted_per_position, o.drafted_per_position);
  AddTo(verified_per_position, o.verified_per_position);
  AddTo(accepted_per_position, o.accepted_per_position);
  AddTo(k_histogram, o.k_histogram);
  draft_ms += o.draft_ms, verify_ms += o.verify_ms, overhead_ms += o.overhead_ms,
      draft_prompt_ms += o.draft_prompt_ms;
}

}  // namespace foretoken
