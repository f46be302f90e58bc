// SPDX-License-Identifier: Apache-2.0
#include "engine/step/prompt_rows.h"

#include <algorithm>

namespace foretoken::engine {

void PromptRows::Record(int rows, double us, double plain_us) noexcept {
  // With few rows the noise is larger than their cost.
  if (rows < kLeast / 2 || us <= 0 || plain_us <= 0) return;
  constexpr double kWeight = 0.2,
                   kCheapest = 1e-3;  // a row costs something, whatever the clock says
  const double seen = std::max((us - plain_us) / rows, kCheapest * plain_us);
  row_us_ = row_us_ == 0
                ? seen
                : (1 - kWeight) * row_us_ + kWeight * std::clamp(seen, row_us_ / 2, row_us_ * 2);
}

int PromptRows::Most(double plain_us, bool others_decode) const noexcept {
  const int times = others_decode ? 1 : kUndisturbed;
  if (row_us_ == 0 || plain_us <= 0) return std::min(times * kUnknown, most_);
  const double rows = (times * kFactor - 1) * plain_us / row_us_;
  return static_cast<int>(std::min<double>(std::max<double>(rows, times * kLeast), most_));
}

}  // namespace foretoken::engine
