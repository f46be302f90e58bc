// SPDX-License-Identifier: Apache-2.0
#include "verify/registry.h"

#include <algorithm>
#include <array>

namespace foretoken {
namespace verify {

extern const VerifierSpec kBlockSpec, kGreedySpec, kLogitComparisonSpec, kRelaxedSpec,
    kResidualSpec, kSampleMatchSpec, kTargetProbabilitySpec, kTypicalAcceptanceSpec;

namespace {

constexpr std::array kRows = {
    &kGreedySpec, &kResidualSpec,          &kSampleMatchSpec,     &kTargetProbabilitySpec,
    &kBlockSpec,  &kTypicalAcceptanceSpec, &kLogitComparisonSpec, &kRelaxedSpec,
};

}  // namespace

std::span<const VerifierSpec* const> Strategies() {
  return kRows;
}

}  // namespace verify

std::span<const StrategyInfo* const> AllStrategies() {
  static const auto rows = [] {
    std::array<const StrategyInfo*, verify::kRows.size()> all{};
    std::transform(verify::kRows.begin(), verify::kRows.end(), all.begin(),
                   [](const verify::VerifierSpec* row) { return &row->info; });
    return all;
  }();
  return rows;
}

std::optional<VerifyStrategy> VerifyStrategy::Named(std::string_view name) {
  if (name == kAuto.name()) return kAuto;
  const StrategyInfo* const row = FindStrategy(name);
  return row == nullptr ? std::nullopt : std::optional(VerifyStrategy(row->name));
}

}  // namespace foretoken
