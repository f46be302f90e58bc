// SPDX-License-Identifier: Apache-2.0
// kernels/choice_testing.h: the token that a whole row chooses, by the functions that a sampler calls.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernels/choice.h"

namespace foretoken::kernels {

// -1: the row itself is wanted.
inline std::int32_t ChoiceOfWhole(const Kernels& kernels, const Choice& choice,
                                  std::span<const float> row) {
  if (choice.rule == ChoiceRule::kNone) return -1;
  const int n = choice.n_tokens;
  const float best = kernels.max(row.data(), n);
  if (choice.rule == ChoiceRule::kBest || !std::isfinite(best))
    return kernels.argmax(row.data(), n);
  std::vector<float> p(row.size());
  double sum = kernels.exp_sum(row.data(), n, best, choice.inverse_temperature, p.data());
  if (!(sum < std::numeric_limits<double>::infinity())) {
    for (float& w : p) w = std::isnan(w) ? 0.0f : w;
    sum = kernels.sum(p.data(), n);
  }
  kernels.scale(p.data(), n, static_cast<float>(1.0 / sum));
  return std::max(kernels.race(p.data(), 0, n, choice.noise).token, 0);
}

}  // namespace foretoken::kernels
