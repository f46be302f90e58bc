// SPDX-License-Identifier: Apache-2.0
#include "draft_length/context_costs.h"

#include <algorithm>
#include <cmath>

#include "draft_length/tuning.h"

namespace foretoken::draft_length {
namespace {

using namespace tuning;

// Where nothing is known, reading a position is taken to cost so many times what multiplying it with a row does.
constexpr double kBytesBesideArithmetic = 2;
// By how much a price may be off that another engine had learned.
constexpr double kKnownShare = 0.05;

}  // namespace

ContextCosts::Prices ContextCosts::Weights(const ContextPass& pass) noexcept {
  const double context = std::max(0, pass.context);
  return {context * pass.sequences, context * pass.rows};
}

double ContextCosts::Variance(const Prices& w) const noexcept {
  return w.bytes * w.bytes * var_bytes_ + 2 * w.bytes * w.arithmetic * covariance_ +
         w.arithmetic * w.arithmetic * var_arithmetic_;
}

// Forgets what readings have made certain: the prices may be off by this much, one standard deviation.
void ContextCosts::SetDoubt(double arithmetic) noexcept {
  const double bytes = kBytesBesideArithmetic * arithmetic;
  first_ = {bytes * bytes, arithmetic * arithmetic};
  var_bytes_ = first_.bytes, covariance_ = 0, var_arithmetic_ = first_.arithmetic;
}

void ContextCosts::Start(double row_us) noexcept {
  prices_ = {};
  SetDoubt(row_us / kRowsPositions);
}

void ContextCosts::Measured(const ContextPass& pass, double beyond_us, double noise_us) noexcept {
  const Prices w = Weights(pass);
  const double parts = kBytesBesideArithmetic * w.bytes + w.arithmetic;
  if (parts <= 0) return;
  const double arithmetic = beyond_us / parts;
  if (arithmetic * arithmetic > first_.arithmetic) SetDoubt(arithmetic);
  Learn(pass, beyond_us - Us(pass), noise_us);
}

void ContextCosts::Known(const Prices& prices) noexcept {
  if (prices.bytes <= 0 && prices.arithmetic <= 0) return;
  prices_ = prices;
  SetDoubt(std::max(prices.bytes / kBytesBesideArithmetic, prices.arithmetic));
  var_bytes_ *= kKnownShare * kKnownShare;
  var_arithmetic_ *= kKnownShare * kKnownShare;
}

double ContextCosts::Us(const ContextPass& pass) const noexcept {
  const Prices w = Weights(pass);
  return prices_.bytes * w.bytes + prices_.arithmetic * w.arithmetic;
}

double ContextCosts::DoubtUs(const ContextPass& pass) const noexcept {
  return std::sqrt(std::max(0.0, Variance(Weights(pass))));
}

double ContextCosts::Learn(const ContextPass& pass, double more_us, double noise_us) noexcept {
  const Prices w = Weights(pass);
  const double variance = Variance(w), all = variance + noise_us * noise_us;
  if (variance <= 0 || all <= 0) return 0;
  const double before = Us(pass),
               gain_bytes = (w.bytes * var_bytes_ + w.arithmetic * covariance_) / all,
               gain_arithmetic = (w.bytes * covariance_ + w.arithmetic * var_arithmetic_) / all;
  prices_.bytes += gain_bytes * more_us;
  prices_.arithmetic += gain_arithmetic * more_us;
  // No price is negative: what the other one is too high by is taken from it.
  if (prices_.arithmetic < 0) prices_.bytes += prices_.arithmetic * w.arithmetic / w.bytes;
  if (prices_.bytes < 0) prices_.arithmetic += prices_.bytes * w.bytes / w.arithmetic;
  prices_ = {std::max(0.0, prices_.bytes), std::max(0.0, prices_.arithmetic)};
  var_bytes_ -= gain_bytes * gain_bytes * all;
  covariance_ -= gain_bytes * gain_arithmetic * all;
  var_arithmetic_ -= gain_arithmetic * gain_arithmetic * all;
  var_bytes_ = std::min(first_.bytes, var_bytes_ + kPriceDrift * first_.bytes);
  var_arithmetic_ = std::min(first_.arithmetic, var_arithmetic_ + kPriceDrift * first_.arithmetic);
  return Us(pass) - before;
}

}  // namespace foretoken::draft_length
