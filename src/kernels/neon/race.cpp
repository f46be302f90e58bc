// SPDX-License-Identifier: Apache-2.0
// kernels/neon/race.cpp: the RACE of kernels/kernels.h, 16 tokens at a time: those of 4 blocks.
//
// Philox is most of the work, so a group of tokens none of which could win with any noise does
// without it. E >= v, so for nearly all others one product shows that they do not win, and E itself
// is computed for a few vectors of a race only. Both tests leave room for all roundings: what is
// left out has a higher score than the winner's.
#include "kernels/neon/functions.h"
#include "kernels/neon/lanes.h"
#include "kernels/neon/log.h"

namespace foretoken::kernels::neon {
namespace {

constexpr int kWords = 4;  // of a block of noise: each serves one vector of tokens
constexpr int kGroup = kWords * kLanes;
constexpr int kRounds = 10;
constexpr float kNear = 0.29289323f;               // below, 1 - v has fewer bits than v
constexpr float kLeastNoise = 0x1p-33f * 0.9999f;  // v is never less
constexpr float kHalfWords = 0x1p31f * 1.0001f;    // v is at least w / 2 times 2^-31

// Low and high halves of the products with `factor`.
struct Products {
  uint32x4_t low, high;
  Products(uint32x4_t x, std::uint32_t factor) {
    const uint32x2_t f = vdup_n_u32(factor);
    const uint32x4_t a = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(x), f));
    const uint32x4_t b = vreinterpretq_u32_u64(vmull_u32(vget_high_u32(x), f));
    low = vuzp1q_u32(a, b);
    high = vuzp2q_u32(a, b);
  }
};

// Philox4x32-10 of the 4 blocks from `block` on: each word in the order of the blocks.
void Words(const RaceNoise& noise, int block, uint32x4_t (&c)[kWords]) {
  constexpr std::uint32_t kCount[kWidth] = {0, 1, 2, 3};
  for (int j = 0; j < 3; ++j) c[j] = vdupq_n_u32(noise.counter[j]);
  c[3] = vaddq_u32(vdupq_n_u32(static_cast<std::uint32_t>(block)), vld1q_u32(kCount));
  std::uint32_t k0 = noise.key[0], k1 = noise.key[1];
#pragma GCC unroll 10
  for (int round = 0; round < kRounds; ++round) {
    const Products p0(c[0], 0xD2511F53u), p1(c[2], 0xCD9E8D57u);
    c[0] = veorq_u32(veorq_u32(p1.high, c[1]), vdupq_n_u32(k0));
    c[1] = p1.low;
    c[2] = veorq_u32(veorq_u32(p0.high, c[3]), vdupq_n_u32(k1));
    c[3] = p0.low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

// (w + 0.5) * 2^-32, rounded once.
float32x4_t Fraction(uint32x4_t w) {
  const float32x4_t high = vcvtq_f32_u32(vshrq_n_u32(w, 16));
  const float32x4_t low = vcvtq_f32_u32(vandq_u32(w, vdupq_n_u32(0xffff)));
  const float32x4_t sum = vfmaq_f32(vaddq_f32(low, vdupq_n_f32(0.5f)), high, vdupq_n_f32(65536.0f));
  return vmulq_n_f32(sum, 0x1p-32f);
}

float32x4_t Exponential(uint32x4_t w) {
  const float32x4_t v = Fraction(w);
  const uint32x4_t near = vcltq_f32(v, vdupq_n_f32(kNear));
  LogParts parts = PartsOf(Fraction(vmvnq_u32(w)));
  parts.n = vbslq_f32(near, vdupq_n_f32(0.0f), parts.n);
  parts.f = vbslq_f32(near, vnegq_f32(v), parts.f);
  return vnegq_f32(LogOf(parts));
}

// The best so far.
struct Leader {
  std::int32_t token = -1;
  float score = __builtin_inff();
  float least = 0.0f;              // a p that is not above loses with any noise
  float limit = __builtin_inff();  // w / 2 above limit * p loses

  void Challenge(uint32x4_t w, float32x4_t p, uint32x4_t able, int first) {
    std::uint32_t runs[kWidth];
    float scores[kWidth];
    vst1q_u32(runs, vandq_u32(able, vcgtzq_f32(p)));
    vst1q_f32(scores, vdivq_f32(Exponential(w), p));
    for (int i = 0; i < kWidth; ++i)
      if (runs[i] != 0) Take(first + i, scores[i]);
  }

 private:
  void Take(std::int32_t x, float score_of_x) {
    if (token >= 0 && (score_of_x > score || (score_of_x == score && x > token))) return;
    token = x;
    score = score_of_x;
    least = kLeastNoise / score;
    limit = score * kHalfWords;
  }
};

bool Any(const uint32x4_t (&masks)[kWords]) {
  return vmaxvq_u32(vorrq_u32(vorrq_u32(masks[0], masks[1]), vorrq_u32(masks[2], masks[3]))) != 0;
}

// The tokens first + {0 .. 3} + {0, 16, 32, 48}, of blocks that begin at `block`; p: of the first.
void RunGroup(const RaceNoise& noise, int block, const float* p, int first, Leader& leader) {
  float32x4_t x[kWords];
  uint32x4_t able[kWords], words[kWords], may_win[kWords];
  for (int j = 0; j < kWords; ++j) {
    x[j] = vld1q_f32(p + j * kLanes);
    able[j] = vcgtq_f32(x[j], vdupq_n_f32(leader.least));
  }
  if (!Any(able)) return;
  Words(noise, block, words);
  for (int j = 0; j < kWords; ++j) {
    const float32x4_t half = vcvtq_f32_u32(vshrq_n_u32(words[j], 1));
    may_win[j] = vcleq_f32(half, vmulq_n_f32(x[j], leader.limit));
  }
  if (!Any(may_win)) return;
  for (int j = 0; j < kWords; ++j) leader.Challenge(words[j], x[j], may_win[j], first + j * kLanes);
}

}  // namespace

std::int32_t Race(const float* p, int n, const RaceNoise& noise) {
  Leader leader;
  const int whole = n - n % kGroup;
  for (int i = 0; i < whole; i += kGroup)
    for (int b = 0; b < kLanes; b += kWidth)
      RunGroup(noise, i / kWords + b, p + i + b, i + b, leader);
  if (whole == n) return leader.token;
  float rest[kGroup] = {};
  for (int i = whole; i < n; ++i) rest[i - whole] = p[i];
  for (int b = 0; b < kLanes; b += kWidth)
    RunGroup(noise, whole / kWords + b, rest + b, whole + b, leader);
  return leader.token;
}

}  // namespace foretoken::kernels::neon
