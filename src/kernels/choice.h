// SPDX-License-Identifier: Apache-2.0
// kernels/choice.h: the token that a row of logits chooses, computed from parts of the row.
//
// The columns of a row may be divided among threads and processes. Each finds what its own columns
// say, which takes a few bytes, and together these give the token that the functions of kernels.h
// give for the whole row, to the bit:
//   best  BestOf each part; the Better of all is argmax.
//   race  The value of the best is max. Weigh each part with it, and add the sums. ScaleOf their sum
//         is 1 / exp_sum as a float. RaceIn each part; the Faster of all is the winner.
// The order of a sum decides its last bits, and parts add in another order than exp_sum. So ScaleOf
// gives nothing where both orders might round to different floats, about once in 3,000 rows of
// 128,000 tokens. Then the weights of all parts are needed in one place, for RaceOver.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "kernels/kernels.h"

namespace foretoken::kernels {

enum class ChoiceRule : std::int32_t {
  kNone,  // no token is chosen: the row itself is wanted
  kBest,  // argmax
  kRace,  // the winner of the RACE over softmax(inverse_temperature * logits)
};

struct Choice {
  ChoiceRule rule = ChoiceRule::kNone;
  std::int32_t n_tokens = 0;  // the columns [0, n_tokens) take part
  float inverse_temperature = 1;
  RaceNoise noise = {};
};

// The columns [begin, end) of a row. Columns from n_tokens on are ignored.
struct Columns {
  int begin = 0, end = 0;
};

// The largest value of a part, and its first column. Columns that are not above -infinity are never
// the best.
struct PartBest {
  float value = -std::numeric_limits<float>::infinity();
  std::int32_t column = 0;
};

PartBest BestOf(const Kernels& kernels, const Choice& choice, const float* row, Columns part);
// REQUIRES: the columns of a are before those of b.
inline PartBest Better(PartBest a, PartBest b) {
  return b.value > a.value ? b : a;
}

// A row without a finite best chooses the column of its best, and there is no race.
bool HasRace(const Choice& choice, PartBest best);

// Turns the logits of a part into weights, in place, and returns their sum. Weights that are NaN
// become 0.
double Weigh(const Kernels& kernels, const Choice& choice, float best, float* row, Columns part);
// sum: of the weights of all parts, in any order.
std::optional<float> ScaleOf(const Choice& choice, double sum);
// Overwrites the weights of the part, and up to 63 columns before it.
RaceWinner RaceIn(const Kernels& kernels, const Choice& choice, float scale, float* row,
                  Columns part);
inline RaceWinner Faster(RaceWinner a, RaceWinner b) {
  if (a.token < 0 || b.token < 0) return a.token < 0 ? b : a;
  if (a.score != b.score) return a.score < b.score ? a : b;
  return a.token < b.token ? a : b;
}
// The winner over the weights of a whole row, which it overwrites.
RaceWinner RaceOver(const Kernels& kernels, const Choice& choice, float* row);

}  // namespace foretoken::kernels
