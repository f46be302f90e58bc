// SPDX-License-Identifier: Apache-2.0
// kernels/avx512/race.cpp: the RACE of kernels/kernels.h, 64 tokens at a time.
//
// Philox is most of the work, so a group of tokens none of which could win with any noise does
// without it. E >= v, so for nearly all others one product shows that they do not win, and E itself
// is computed for a few vectors of a race only. Both tests leave room for all roundings: what is
// left out has a higher score than the winner's.
#include "kernels/avx512/functions.h"
#include "kernels/avx512/lanes.h"
#include "kernels/avx512/log.h"

namespace foretoken::kernels::avx512 {
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

__m512i Broadcast(std::uint32_t x) {
  return _mm512_set1_epi64(static_cast<long long>(x));
}

__m512i Xor(__m512i a, __m512i b, __m512i c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0x96);
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

  // The words of the 16 blocks from `block` on, each word in the order of the blocks.
  void Words(int block, __m512i (&words)[kWords]) const {
    const __m512i lane = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    const __m512i factor0 = Broadcast(kFactor0), factor1 = Broadcast(kFactor1);
    __m512i c[kWords][2];  // of even and of odd blocks
#pragma GCC unroll 2
    for (int t = 0; t < 2; ++t) {
      const __m512i index = _mm512_add_epi64(lane, _mm512_set1_epi64(block + t));
      const __m512i second = _mm512_mul_epu32(_mm512_xor_si512(index, first2_), factor1);
      const __m512i b0 = _mm512_xor_si512(_mm512_srli_epi64(second, 32), second0_);
      const __m512i third = _mm512_mul_epu32(b0, factor0);
      c[0][t] = _mm512_xor_si512(second, third0_);
      c[1][t] = third1_;
      c[2][t] = _mm512_xor_si512(_mm512_srli_epi64(third, 32), third2_);
      c[3][t] = third;
    }
#pragma GCC unroll 7
    for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 2
      for (int t = 0; t < 2; ++t) {
        const __m512i p0 = _mm512_mul_epu32(c[0][t], factor0);
        const __m512i p1 = _mm512_mul_epu32(c[2][t], factor1);
        c[0][t] = Xor(_mm512_srli_epi64(p1, 32), c[1][t], key0_[round]);
        c[1][t] = p1;
        c[2][t] = Xor(_mm512_srli_epi64(p0, 32), c[3][t], key1_[round]);
        c[3][t] = p0;
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < kWords; ++j)
      words[j] = _mm512_mask_mov_epi32(c[j][0], 0xaaaa, _mm512_slli_epi64(c[j][1], 32));
  }

 private:
  static constexpr int kRounds = 7;  // that are whole
  __m512i first2_, second0_, third0_, third1_, third2_;
  __m512i key0_[kRounds], key1_[kRounds];
};

// (w + 0.5) * 2^-32, rounded once.
__m512 Fraction(__m512i w) {
  const __m512 high = _mm512_cvtepi32_ps(_mm512_srli_epi32(w, 16));
  const __m512 low = _mm512_cvtepi32_ps(_mm512_and_si512(w, _mm512_set1_epi32(0xffff)));
  const __m512 sum =
      _mm512_fmadd_ps(high, _mm512_set1_ps(65536.0f), _mm512_add_ps(low, _mm512_set1_ps(0.5f)));
  return _mm512_mul_ps(sum, _mm512_set1_ps(0x1p-32f));
}

__m512 Exponential(__m512i w) {
  const __m512 v = Fraction(w), zero = _mm512_setzero_ps();
  const __mmask16 near = _mm512_cmp_ps_mask(v, _mm512_set1_ps(kNear), _CMP_LT_OQ);
  LogParts parts = PartsOf(Fraction(_mm512_ternarylogic_epi32(w, w, w, 0x55)));
  parts.n = _mm512_mask_mov_ps(parts.n, near, zero);
  parts.f = _mm512_mask_sub_ps(parts.f, near, zero, v);
  return _mm512_sub_ps(zero, LogOf(parts));
}

// The best so far. Tokens come in increasing order.
struct Leader {
  std::int32_t token = -1;
  float score = __builtin_inff();
  float least = 0.0f;              // a p that is not above loses with any noise
  float limit = __builtin_inff();  // w / 2 above limit * p loses

  void Challenge(__m512i w, __m512 p, __mmask16 able, int first) {
    const __mmask16 runs = _mm512_mask_cmp_ps_mask(able, p, _mm512_setzero_ps(), _CMP_GT_OQ);
    if (runs == 0) return;
    const __m512 scores =
        _mm512_mask_div_ps(_mm512_set1_ps(__builtin_inff()), runs, Exponential(w), p);
    const float best = _mm512_reduce_min_ps(scores);
    if (token >= 0 && !(best < score)) return;
    const __mmask16 equal = _mm512_mask_cmp_ps_mask(runs, scores, _mm512_set1_ps(best), _CMP_EQ_OQ);
    token = first + __builtin_ctz(equal);
    score = best;
    least = kLeastNoise / best;
    limit = best * kHalfWords;
  }
};

}  // namespace

std::int32_t Race(const float* p, int n, const RaceNoise& noise) {
  const Blocks blocks(noise);
  Leader leader;
  for (int i = 0; i < n; i += kGroup) {
    __m512 x[kWords];
    const __m512 least = _mm512_set1_ps(leader.least);
    unsigned able = 0;
#pragma GCC unroll 4
    for (int j = 0; j < kWords; ++j) {
      const int left = n - i - j * kLanes;
      const __mmask16 there = FirstLanes(left < 0 ? 0 : left < kLanes ? left : kLanes);
      x[j] = _mm512_maskz_loadu_ps(there, p + i + j * kLanes);
      able |= _mm512_cmp_ps_mask(x[j], least, _CMP_GT_OQ);
    }
    if (able == 0) continue;
    __m512i words[kWords];
    blocks.Words(i / kWords, words);
    const __m512 limit = _mm512_set1_ps(leader.limit);
    __mmask16 may_win[kWords];
#pragma GCC unroll 4
    for (int j = 0; j < kWords; ++j) {
      const __m512 half = _mm512_cvtepi32_ps(_mm512_srli_epi32(words[j], 1));
      may_win[j] = _mm512_cmp_ps_mask(half, _mm512_mul_ps(limit, x[j]), _CMP_LE_OQ);
    }
    if ((may_win[0] | may_win[1] | may_win[2] | may_win[3]) == 0) continue;
    for (int j = 0; j < kWords; ++j)
      if (may_win[j] != 0) leader.Challenge(words[j], x[j], may_win[j], i + j * kLanes);
  }
  return leader.token;
}

}  // namespace foretoken::kernels::avx512
