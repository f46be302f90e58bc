// SPDX-License-Identifier: Apache-2.0
#include "kernels/choice.h"

#include <algorithm>
#include <cmath>

namespace foretoken::kernels {
namespace {

constexpr int kRaceGroup = 64;   // a race begins at a multiple of this
constexpr double kParts = 4096;  // more than twice the number of parts of any row

Columns Within(const Choice& choice, Columns part) {
  return {std::min(part.begin, choice.n_tokens), std::min(part.end, choice.n_tokens)};
}

}  // namespace

PartBest BestOf(const Kernels& kernels, const Choice& choice, const float* row, Columns part) {
  const auto [begin, end] = Within(choice, part);
  if (begin >= end) return {};
  const int column = begin + kernels.argmax(row + begin, end - begin);
  const PartBest best = {row[column] + 0.0f, column};  // -0 becomes +0, as in max
  return Better({}, best);
}

bool HasRace(const Choice& choice, PartBest best) {
  return choice.rule == ChoiceRule::kRace && std::isfinite(best.value);
}

double Weigh(const Kernels& kernels, const Choice& choice, float best, float* row, Columns part) {
  const auto [begin, end] = Within(choice, part);
  if (begin >= end) return 0;
  float* const p = row + begin;
  const double sum = kernels.exp_sum(p, end - begin, best, choice.inverse_temperature, p);
  if (sum < std::numeric_limits<double>::infinity()) return sum;
  std::replace_if(
      p, p + (end - begin), [](float w) { return std::isnan(w); }, 0.0f);
  return kernels.sum(p, end - begin);
}

// Sums of n numbers by lanes, of which none is negative, are within a relative n / 16 * 2^-53 of the
// true sum, and so is the sum of their parts; kParts covers what adding up lanes and parts adds.
// Division and conversion keep the order of numbers, so a sum between two sums of the same scale has
// that scale too.
std::optional<float> ScaleOf(const Choice& choice, double sum) {
  const double error = sum * 0x1p-53 * (choice.n_tokens + kParts);
  const auto least = static_cast<float>(1.0 / (sum + error)),
             most = static_cast<float>(1.0 / (sum - error));
  if (least != most) return std::nullopt;
  return least;
}

RaceWinner RaceIn(const Kernels& kernels, const Choice& choice, float scale, float* row,
                  Columns part) {
  const auto [begin, end] = Within(choice, part);
  if (begin >= end) return {};
  kernels.scale(row + begin, end - begin, scale);
  const int first = begin / kRaceGroup * kRaceGroup;
  std::fill(row + first, row + begin, 0.0f);
  return kernels.race(row + first, first, end - first, choice.noise);
}

RaceWinner RaceOver(const Kernels& kernels, const Choice& choice, float* row) {
  const auto scale = static_cast<float>(1.0 / kernels.sum(row, choice.n_tokens));
  return RaceIn(kernels, choice, scale, row, {0, choice.n_tokens});
}

}  // namespace foretoken::kernels
