// SPDX-License-Identifier: Apache-2.0
#include "model/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace foretoken::model {
namespace {

// The dimension whose angle makes `rotations` full turns over the original context.
double YarnDimension(const RopeConfig& c, double rotations) {
  return c.n_rot * std::log(c.original_context / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(c.freq_base));
}

double YarnRamp(double low, double high, int i) {
  return 1 - std::clamp((i - low) / std::max(0.001, high - low), 0.0, 1.0);
}

}  // namespace

RopeTable::RopeTable(const RopeConfig& c, int max_positions, std::span<const float> freq_factors)
    : half_(static_cast<std::size_t>(c.n_rot / 2)), max_positions_(max_positions) {
  FORETOKEN_CHECK(freq_factors.empty() || freq_factors.size() == half_);
  const double low = std::max(0.0, std::floor(YarnDimension(c, c.yarn_beta_fast)));
  const double high = std::min(c.n_rot - 1.0, std::ceil(YarnDimension(c, c.yarn_beta_slow)));
  for (std::size_t i = 0; i < half_; ++i) {
    double f = std::pow(c.freq_base, -2.0 * static_cast<double>(i) / c.n_rot);
    if (!freq_factors.empty()) f /= static_cast<double>(freq_factors[i]);
    const double interpolated = f * c.freq_scale;
    const double mix = c.yarn ? YarnRamp(low, high, static_cast<int>(i)) * c.yarn_ext_factor : 0;
    frequency_.push_back(interpolated * (1 - mix) + f * mix);
  }
  magnitude_ = c.attention_factor;
  const double log_factor = 0.1 * std::log(1 / c.freq_scale);
  if (c.yarn) magnitude_ *= (1 + log_factor) / (1 + c.yarn_log_multiplier * log_factor);
  cos_ = AlignedBuffer<float>(static_cast<std::size_t>(max_positions) * half_);
  sin_ = AlignedBuffer<float>(static_cast<std::size_t>(max_positions) * half_);
}

void RopeTable::Extend(int n_positions) noexcept {
  FORETOKEN_CHECK(n_positions <= max_positions_);
  for (; filled_ < n_positions; ++filled_)
    for (std::size_t i = 0; i < half_; ++i) {
      const double angle = filled_ * frequency_[i];
      cos_[Row(filled_) + i] = static_cast<float>(std::cos(angle) * magnitude_);
      sin_[Row(filled_) + i] = static_cast<float>(std::sin(angle) * magnitude_);
    }
}

}  // namespace foretoken::model
