// SPDX-License-Identifier: Apache-2.0
// foretoken/adaptive_lookahead.h: a draft length that follows the mean number of accepted drafts.
//
//   auto lookahead = foretoken::AdaptiveLookahead::Create({});
//   lookahead->Observe(drafted, accepted);      // after each round
//   const int k = lookahead->lookahead();        // for the next one
//
// The mean is exponentially weighted: ewma = alpha * accepted + (1 - alpha) * ewma; the first
// observation is taken as it is. After every cooldown_steps + 1 observations the draft length
// becomes ewma + 1, rounded (halves away from zero), within [min, max]. One thread at a time.
// Observing costs next to nothing.
#pragma once

#include <cstdint>

#include "foretoken/result.h"

namespace foretoken {

struct AdaptiveLookaheadConfig {
  int initial = 5;         // in [min, max]
  int min = 2;             // >= 1
  int max = 12;            // >= min
  double alpha = 0.20;     // in [0, 1]
  int cooldown_steps = 4;  // >= 0: observations between two changes
};

class AdaptiveLookahead {
 public:
  // Errors: kInvalidArgument, naming the value that is out of range.
  [[nodiscard]] static Result<AdaptiveLookahead> Create(const AdaptiveLookaheadConfig& config);

  // A round drafted `drafted` tokens, and `accepted` of them were accepted. If more were accepted
  // than drafted, all count as accepted; a negative number counts as 0.
  void Observe(int drafted, int accepted) noexcept;
  // Back to the state after Create.
  void Reset() noexcept;
  // Uses another configuration from here on. The mean and the counters stay; the draft length moves
  // into the new range. Errors: as Create; nothing has changed then.
  [[nodiscard]] Status Configure(const AdaptiveLookaheadConfig& config);

  int lookahead() const { return lookahead_; }
  double mean_accepted() const { return ewma_; }  // 0 before the first observation
  std::int64_t observations() const { return observations_; }
  std::int64_t updates() const { return updates_; }  // changes of the draft length
  const AdaptiveLookaheadConfig& config() const { return config_; }

 private:
  explicit AdaptiveLookahead(const AdaptiveLookaheadConfig& config) : config_(config) { Reset(); }

  AdaptiveLookaheadConfig config_;
  int lookahead_ = 0, cooldown_left_ = 0;
  double ewma_ = 0;
  std::int64_t observations_ = 0, updates_ = 0;
};

}  // namespace foretoken
