// SPDX-License-Identifier: Apache-2.0
// kernels/scalar/race.cpp: the RACE of kernels/kernels.h as it is defined: every score is computed.
#include "base/rng.h"
#include "kernels/scalar/functions.h"
#include "kernels/scalar/log.h"

namespace foretoken::kernels::scalar {
namespace {

constexpr int kBlocks = 16;           // blocks of noise in a group of tokens
constexpr int kGroup = 4 * kBlocks;   // tokens
constexpr float kNear = 0.29289323f;  // below this, 1 - v has fewer bits than v

// (w + 0.5) * 2^-32, rounded once.
float Fraction(std::uint32_t w) {
  const float high = static_cast<float>(w >> 16), low = static_cast<float>(w & 0xffffu);
  return __builtin_fmaf(high, 65536.0f, low + 0.5f) * 0x1p-32f;
}

float Exponential(std::uint32_t w) {
  const float v = Fraction(w);
  return -LogOf(v < kNear ? LogParts{0.0f, -v} : PartsOf(Fraction(~w)));
}

}  // namespace

RaceWinner Race(const float* p, int first, int n, const RaceNoise& noise) {
  RaceWinner best;
  for (int block = 0; block / kBlocks * kGroup < n; ++block) {
    const auto index = static_cast<std::uint32_t>(first / kGroup * kBlocks + block);
    const auto words = Philox({noise.counter[0], noise.counter[1], noise.counter[2], index},
                              {noise.key[0], noise.key[1]});
    for (int j = 0; j < 4; ++j) {
      const int i = block / kBlocks * kGroup + block % kBlocks + j * kBlocks, x = first + i;
      if (i >= n || !(p[i] > 0.0f)) continue;
      const float score = Exponential(words[static_cast<std::size_t>(j)]) / p[i];
      if (best.token >= 0 && (score > best.score || (score == best.score && x > best.token)))
        continue;
      best = {x, score};
    }
  }
  return best;
}

}  // namespace foretoken::kernels::scalar
