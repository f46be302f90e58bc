// SPDX-License-Identifier: Apache-2.0
#include "draft_length/expert_costs.h"

#include <algorithm>
#include <cmath>

namespace foretoken::draft_length {
namespace {

// The share of a pass that moves the agreement of as many rows, because texts change what they are about
// within some tens of rounds; and the part of that which moves the agreement of all other numbers of rows.
constexpr double kAgreementShare = 0.1, kOthersPart = 0.8;

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
  const double agreement =
      std::clamp(agreement_[static_cast<std::size_t>(std::min(rows, kMostRows))], 0.0, 1.0);
  return -us_per_expert_ * agreement * (Independent(rows) - Independent(1));
}

std::optional<double> ExpertCosts::Agreement(int rows, std::int64_t distinct) const noexcept {
  if (shape_.layers == 0 || rows < 2 || distinct == 0) return std::nullopt;
  const double least = Independent(1), most = Independent(rows);
  if (most - least < 1) return std::nullopt;
  return std::clamp((most - static_cast<double>(distinct)) / (most - least), 0.0, 1.0);
}

// Between the numbers of rows that were measured it is interpolated.
void ExpertCosts::Expect(std::span<const PassCost> passes) noexcept {
  std::array<std::optional<double>, kMostRows + 1> seen;
  for (const PassCost& pass : passes)
    if (const auto agreement = Agreement(pass.rows, pass.distinct_experts))
      seen[static_cast<std::size_t>(std::min(pass.rows, kMostRows))] = agreement;
  std::size_t left = 0;  // rows that were measured
  for (std::size_t rows = 1; rows < seen.size(); ++rows) {
    if (!seen[rows]) continue;
    const double right = *seen[rows], from = left == 0 ? right : *seen[left];
    for (std::size_t r = left + 1; r <= rows; ++r)
      agreement_[r] =
          std::lerp(from, right, static_cast<double>(r - left) / static_cast<double>(rows - left));
    left = rows;
  }
  if (left > 0) std::fill(agreement_.begin() + left, agreement_.end(), *seen[left]);
}

void ExpertCosts::Record(int rows, std::int64_t distinct) noexcept {
  const auto seen = Agreement(rows, distinct);
  if (!seen) return;
  double& own = agreement_[static_cast<std::size_t>(std::min(rows, kMostRows))];
  const double moved = kAgreementShare * (*seen - own), others = kOthersPart * moved;
  for (double& agreement : agreement_) agreement += others;
  own += moved - others;
}

}  // namespace foretoken::draft_length
