// SPDX-License-Identifier: Apache-2.0
// kernels/avx2/race.cpp: the RACE of kernels/kernels.h, 32 tokens at a time: those of 8 blocks.
//
// Philox is most of the work, so a group of tokens none of which could win with any noise does
// without it. E >= v, so for nearly all others one product shows that they do not win, and E itself
// is computed for a few vectors of a race only. Both tests leave room for all roundings: what is
// left out has a higher score than the winner's.
#include <immintrin.h>

#include "kernels/avx2/functions.h"
#include "kernels/avx2/lanes.h"
#include "kernels/avx2/log.h"

namespace foretoken::kernels::avx2 {
namespace {

constexpr int kWords = 4;  // of a block of noise: each serves one vector of tokens
constexpr int kGroup = kWords * kLanes;
constexpr float kNear = 0.29289323f;               // below, 1 - v has fewer bits than v
constexpr float kLeastNoise = 0x1p-33f * 0.9999f;  // v is never less
constexpr float kHalfWords = 0x1p31f * 1.0001f;    // v is at least w / 2 times 2^-31
constexpr std::uint32_t kFactor0 = 0xD2511F53u, kFactor1 = 0xCD9E8D57u;
constexpr std::uint32_t kStep0 = 0x9E3779B9u, kStep1 = 0xBB67AE85u;

std::uint32_t High(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((std::uint64_t{a} * b) >> 32);
}

__m256i Broadcast(std::uint32_t x) {
  return _mm256_set1_epi64x(static_cast<long long>(x));
}

__m256i Xor(__m256i a, __m256i b, __m256i c) {
  return _mm256_xor_si256(a, _mm256_xor_si256(b, c));
}

// Philox4x32-10 of blocks of one race. They differ in the last word of the counter alone, so half
// of the first three rounds is the same for all. Words lie in the low halves of 64-bit lanes; what
// the high halves hold never matters.
class Blocks {
 public:
  explicit Blocks(const RaceNoise& noise) {
    const std::uint32_t* c = noise.counter;
    std::uint32_t k0 = noise.key[0], k1 = noise.key[1];
    const std::uint32_t a0 = High(kFactor1, c[2]) ^ c[1] ^ k0, a1 = kFactor1 * c[2];
    const std::uint32_t a3 = kFactor0 * c[0];
    first2_ = Broadcast(High(kFactor0, c[0]) ^ k1);
    k0 += kStep0, k1 += kStep1;
    const std::uint32_t b2 = High(kFactor0, a0) ^ a3 ^ k1, b3 = kFactor0 * a0;
    second0_ = Broadcast(a1 ^ k0);
    k0 += kStep0, k1 += kStep1;
    third0_ = Broadcast(High(kFactor1, b2) ^ k0);
    third1_ = Broadcast(kFactor1 * b2);
    third2_ = Broadcast(b3 ^ k1);
    for (int round = 0; round < kRounds; ++round) {
      k0 += kStep0, k1 += kStep1;
      key0_[round] = Broadcast(k0);
      key1_[round] = Broadcast(k1);
    }
  }

  // The words of the 8 blocks from `block` on, each word in the order of the blocks.
  void Words(int block, __m256i (&words)[kWords]) const {
    const __m256i lane = _mm256_setr_epi64x(0, 2, 4, 6);
    const __m256i factor0 = Broadcast(kFactor0), factor1 = Broadcast(kFactor1);
    __m256i c[kWords][2];  // of even and of odd blocks
#pragma GCC unroll 2
    for (int t = 0; t < 2; ++t) {
      const __m256i index = _mm256_add_epi64(lane, _mm256_set1_epi64x(block + t));
      const __m256i second = _mm256_mul_epu32(_mm256_xor_si256(index, first2_), factor1);
      const __m256i b0 = _mm256_xor_si256(_mm256_srli_epi64(second, 32), second0_);
      const __m256i third = _mm256_mul_epu32(b0, factor0);
      c[0][t] = _mm256_xor_si256(second, third0_);
      c[1][t] = third1_;
      c[2][t] = _mm256_xor_si256(_mm256_srli_epi64(third, 32), third2_);
      c[3][t] = third;
    }
#pragma GCC unroll 7
    for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 2
      for (int t = 0; t < 2; ++t) {
        const __m256i p0 = _mm256_mul_epu32(c[0][t], factor0);
        const __m256i p1 = _mm256_mul_epu32(c[2][t], factor1);
        c[0][t] = Xor(_mm256_srli_epi64(p1, 32), c[1][t], key0_[round]);
        c[1][t] = p1;
        c[2][t] = Xor(_mm256_srli_epi64(p0, 32), c[3][t], key1_[round]);
        c[3][t] = p0;
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < kWords; ++j)
      words[j] = _mm256_blend_epi32(c[j][0], _mm256_slli_epi64(c[j][1], 32), 0xaa);
  }

 private:
  static constexpr int kRounds = 7;  // that are whole
  __m256i first2_, second0_, third0_, third1_, third2_;
  __m256i key0_[kRounds], key1_[kRounds];
};

// (w + 0.5) * 2^-32, rounded once.
__m256 Fraction(__m256i w) {
  const __m256 high = _mm256_cvtepi32_ps(_mm256_srli_epi32(w, 16));
  const __m256 low = _mm256_cvtepi32_ps(_mm256_and_si256(w, _mm256_set1_epi32(0xffff)));
  const __m256 sum =
      _mm256_fmadd_ps(high, _mm256_set1_ps(65536.0f), _mm256_add_ps(low, _mm256_set1_ps(0.5f)));
  return _mm256_mul_ps(sum, _mm256_set1_ps(0x1p-32f));
}

__m256 Exponential(__m256i w) {
  const __m256 v = Fraction(w), zero = _mm256_setzero_ps();
  const __m256 near = _mm256_cmp_ps(v, _mm256_set1_ps(kNear), _CMP_LT_OQ);
  LogParts parts = PartsOf(Fraction(_mm256_xor_si256(w, _mm256_set1_epi32(-1))));
  parts.n = _mm256_andnot_ps(near, parts.n);
  parts.f = _mm256_blendv_ps(parts.f, _mm256_sub_ps(zero, v), near);
  return _mm256_sub_ps(zero, LogOf(parts));
}

// The best so far.
struct Leader {
  std::int32_t token = -1;
  float score = __builtin_inff();
  float least = 0.0f;              // a p that is not above loses with any noise
  float limit = __builtin_inff();  // w / 2 above limit * p loses

  void Challenge(__m256i w, __m256 p, __m256 able, int first) {
    const __m256 runs = _mm256_and_ps(able, _mm256_cmp_ps(p, _mm256_setzero_ps(), _CMP_GT_OQ));
    const int there = _mm256_movemask_ps(runs);
    if (there == 0) return;
    const __m256 scores =
        _mm256_blendv_ps(_mm256_set1_ps(__builtin_inff()), _mm256_div_ps(Exponential(w), p), runs);
    const float best = -FoldMax(_mm256_sub_ps(_mm256_setzero_ps(), scores));
    const __m256 equal = _mm256_cmp_ps(scores, _mm256_set1_ps(best), _CMP_EQ_OQ);
    const int lane = __builtin_ctz(static_cast<unsigned>(there & _mm256_movemask_ps(equal)));
    const bool wins = token < 0 || best < score || (best == score && first + lane < token);
    if (!wins) return;
    token = first + lane;
    score = best;
    least = kLeastNoise / best;
    limit = best * kHalfWords;
  }
};

// The tokens first + {0 .. 7} + {0, 16, 32, 48}, of blocks that begin at `block`.
void RunGroup(const Blocks& blocks, int block, const __m256 (&p)[kWords], int first,
              Leader& leader) {
  const __m256 least = _mm256_set1_ps(leader.least);
  __m256 able[kWords];
#pragma GCC unroll 4
  for (int j = 0; j < kWords; ++j) able[j] = _mm256_cmp_ps(p[j], least, _CMP_GT_OQ);
  if (_mm256_movemask_ps(
          _mm256_or_ps(_mm256_or_ps(able[0], able[1]), _mm256_or_ps(able[2], able[3]))) == 0)
    return;
  __m256i words[kWords];
  blocks.Words(block, words);
  const __m256 limit = _mm256_set1_ps(leader.limit);
  __m256 may_win[kWords];
#pragma GCC unroll 4
  for (int j = 0; j < kWords; ++j) {
    const __m256 half = _mm256_cvtepi32_ps(_mm256_srli_epi32(words[j], 1));
    may_win[j] = _mm256_cmp_ps(half, _mm256_mul_ps(limit, p[j]), _CMP_LE_OQ);
  }
  if (_mm256_movemask_ps(_mm256_or_ps(_mm256_or_ps(may_win[0], may_win[1]),
                                      _mm256_or_ps(may_win[2], may_win[3]))) == 0)
    return;
  for (int j = 0; j < kWords; ++j)
    if (_mm256_movemask_ps(may_win[j]) != 0)
      leader.Challenge(words[j], p[j], may_win[j], first + j * kLanes);
}

}  // namespace

std::int32_t Race(const float* p, int n, const RaceNoise& noise) {
  const Blocks blocks(noise);
  Leader leader;
  __m256 x[kWords];
  const int whole = n - n % kGroup;
  for (int i = 0; i < whole; i += kGroup) {
    for (int half = 0; half < kLanes; half += kHalf) {
#pragma GCC unroll 4
      for (int j = 0; j < kWords; ++j) x[j] = _mm256_loadu_ps(p + i + j * kLanes + half);
      RunGroup(blocks, i / kWords + half, x, i + half, leader);
    }
  }
  for (int half = 0; whole < n && half < kLanes; half += kHalf) {
    for (int j = 0; j < kWords; ++j) {
      const int begin = whole + j * kLanes + half;
      x[j] = _mm256_maskload_ps(p + begin, FirstLanes(n - begin));
    }
    RunGroup(blocks, whole / kWords + half, x, whole + half, leader);
  }
  return leader.token;
}

}  // namespace foretoken::kernels::avx2
