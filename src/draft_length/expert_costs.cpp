// SPDX-License-Identifier: Apache-2.0
#include "draft_length/expert_costs.h"

#include <algorithm>
#include <cmath>

namespace foretoken::draft_length {
namespace {

// The share of a pass that moves the agreement. Texts change what they are about within some tens
// of rounds.
constexpr double kAgreementShare = 0.1;

}  // namespace

ExpertCosts::ExpertCosts(const ExpertShape& shape, double us_per_expert)
    : shape_(shape), us_per_expert_(std::max(0.0, us_per_expert)) {}

double ExpertCosts::Independent(int rows) const noexcept {
  if (shape_.layers == 0) return 0;
  const double unused = 1 - static_cast<double>(shape_.used) / shape_.n;
  return shape_.layers * shape_.n * (1 - std::pow(unused, rows));
}

double ExpertCosts::BeyondUs(int rows, std::int64_t distinct) const noexcept {
  if (us_per_expert_ == 0 || distinct == 0) return 0;
  return us_per_expert_ * (static_cast<double>(distinct) - Independent(rows));
}

double ExpertCosts::ExpectedBeyondUs(int rows) const noexcept {
  if (us_per_expert_ == 0) return 0;
  return -us_per_expert_ * agreement_ * (Independent(rows) - Independent(1));
}

std::optional<double> ExpertCosts::Agreement(int rows, std::int64_t distinct) const noexcept {
  if (shape_.layers == 0 || rows < 2 || distinct == 0) return std::nullopt;
  const double least = Independent(1), most = Independent(rows);
  if (most - least < 1) return std::nullopt;
  return std::clamp((most - static_cast<double>(distinct)) / (most - least), 0.0, 1.0);
}

void ExpertCosts::Expect(std::span<const PassCost> passes) noexcept {
  double sum = 0;
  int n = 0;
  for (const PassCost& pass : passes)
    if (const auto agreement = Agreement(pass.rows, pass.distinct_experts)) sum += *agreement, ++n;
  if (n > 0) agreement_ = sum / n;
}

void ExpertCosts::Record(int rows, std::int64_t distinct) noexcept {
  if (const auto agreement = Agreement(rows, distinct))
    agreement_ += kAgreementShare * (*agreement - agreement_);
}

}  // namespace foretoken::draft_length
