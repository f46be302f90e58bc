// SPDX-License-Identifier: Apache-2.0
#include "foretoken/adaptive_lookahead.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace foretoken {

namespace {

Status Check(const AdaptiveLookaheadConfig& config) {
  const auto bad = [](const char* what, auto value, std::string range) {
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("lookahead {}: {} is out of range; use {}", what, value, range));
  };
  if (config.min < 1) return bad("min", config.min, "1 or more");
  if (config.max < config.min)
    return bad("max", config.max, fmt::format("{}, the minimum, or more", config.min));
  if (config.initial < config.min || config.initial > config.max)
    return bad("initial", config.initial, fmt::format("{} to {}", config.min, config.max));
  if (!(config.alpha >= 0 && config.alpha <= 1)) return bad("alpha", config.alpha, "0 to 1");
  if (config.cooldown_steps < 0) return bad("cooldown", config.cooldown_steps, "0 or more");
  return {};
}

}  // namespace

Result<AdaptiveLookahead> AdaptiveLookahead::Create(const AdaptiveLookaheadConfig& config) {
  FORETOKEN_CHECK_OK(Check(config));
  return AdaptiveLookahead(config);
}

Status AdaptiveLookahead::Configure(const AdaptiveLookaheadConfig& config) {
  FORETOKEN_CHECK_OK(Check(config));
  config_ = config;
  lookahead_ = std::clamp(lookahead_, config.min, config.max);
  cooldown_left_ = std::min(cooldown_left_, config.cooldown_steps);
  return {};
}

void AdaptiveLookahead::Reset() noexcept {
  lookahead_ = config_.initial;
  cooldown_left_ = config_.cooldown_steps;
  ewma_ = 0;
  observations_ = updates_ = 0;
}

void AdaptiveLookahead::Observe(int drafted, int accepted) noexcept {
  const double a = std::clamp(accepted, 0, std::max(0, drafted));
  ewma_ = observations_++ == 0 ? a : config_.alpha * a + (1 - config_.alpha) * ewma_;
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    return;
  }
  const double wanted = std::round(ewma_ + 1);  // rounds halves away from zero
  const int target = static_cast<int>(
      std::clamp(wanted, static_cast<double>(config_.min), static_cast<double>(config_.max)));
  if (target != lookahead_) ++updates_;
  lookahead_ = target;
  cooldown_left_ = config_.cooldown_steps;
}

}  // namespace foretoken
