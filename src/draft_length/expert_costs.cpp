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

void ExpertCosts::Record(int rows, std::int64_t distinct) noexcept {
  if (shape_.layers == 0 || rows < 2 || distinct == 0) return;
  const double least = Independent(1), most = Independent(rows);
  if (most - least < 1) return;
  const double agreement = (most - static_cast<double>(distinct)) / (most - least);
  agreement_ += kAgreementShare * (std::clamp(agreement, 0.0, 1.0) - agreement_);
}

}  // namespace foretoken::draft_length
