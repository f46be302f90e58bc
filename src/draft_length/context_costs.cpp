// SPDX-License-Identifier: Apache-2.0
#include "draft_length/context_costs.h"

#include <algorithm>
#include <cmath>

#include "draft_length/tuning.h"

namespace foretoken::draft_length {
namespace {

using namespace tuning;

// Prices nobody knows: a row's arithmetic costs as much as its bytes within this factor.
constexpr double kBytesBesideArithmetic = 2;

}  // namespace

ContextCosts::Prices ContextCosts::Weights(const ContextPass& pass) noexcept {
  const double context = std::max(0, pass.context);
  return {context * pass.sequences, context * pass.rows};
}

double ContextCosts::Variance(const Prices& w) const noexcept {
  return w.bytes * w.bytes * bytes_ + 2 * w.bytes * w.arithmetic * both_ +
         w.arithmetic * w.arithmetic * arithmetic_;
}

// The prices may be anything up to some of these standard deviations.
void ContextCosts::Doubt(double arithmetic) noexcept {
  const double bytes = kBytesBesideArithmetic * arithmetic;
  first_ = {bytes * bytes, arithmetic * arithmetic};
  bytes_ = first_.bytes, both_ = 0, arithmetic_ = first_.arithmetic;
}

void ContextCosts::Start(double row_us) noexcept {
  prices_ = {};
  Doubt(row_us / kRowsPositions);
}

void ContextCosts::Measured(const ContextPass& pass, double beyond_us, double noise_us) noexcept {
  const Prices w = Weights(pass);
  const double parts = kBytesBesideArithmetic * w.bytes + w.arithmetic;
  if (parts <= 0) return;
  const double arithmetic = beyond_us / parts;
  if (arithmetic * arithmetic > first_.arithmetic) Doubt(arithmetic);
  Learn(pass, beyond_us - Us(pass), noise_us);
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
  const double before = Us(pass), gain_bytes = (w.bytes * bytes_ + w.arithmetic * both_) / all,
               gain_arithmetic = (w.bytes * both_ + w.arithmetic * arithmetic_) / all;
  prices_.bytes += gain_bytes * more_us;
  prices_.arithmetic += gain_arithmetic * more_us;
  // No price is negative: what the other one is too high by is taken from it.
  if (prices_.arithmetic < 0) prices_.bytes += prices_.arithmetic * w.arithmetic / w.bytes;
  if (prices_.bytes < 0) prices_.arithmetic += prices_.bytes * w.bytes / w.arithmetic;
  prices_ = {std::max(0.0, prices_.bytes), std::max(0.0, prices_.arithmetic)};
  bytes_ -= gain_bytes * gain_bytes * all;
  both_ -= gain_bytes * gain_arithmetic * all;
  arithmetic_ -= gain_arithmetic * gain_arithmetic * all;
  bytes_ = std::min(first_.bytes, bytes_ + kPriceDrift * first_.bytes);
  arithmetic_ = std::min(first_.arithmetic, arithmetic_ + kPriceDrift * first_.arithmetic);
  return Us(pass) - before;
}

}  // namespace foretoken::draft_length
