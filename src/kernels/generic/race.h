// SPDX-License-Identifier: Apache-2.0
// kernels/generic/race.h: the RACE of kernels/kernels.h.
//
// Philox is most of the work, so a group of tokens that cannot win with any noise does without it.
// As E >= v, one product shows for nearly all other tokens that they lose, and E itself is computed
// for only a few registers of a race. Both tests leave room for all roundings: a token that they
// leave out has a higher score than the winner.
//
// What L offers for it, on the lanes of U64:
//   Product(x, factor)    the product of the low 32 bits of each lane and the factor
//   Weave(even, odd)      a U that takes its even lanes from the low halves of `even`, and its odd
//                         lanes from those of `odd`
#pragma once

#include "kernels/generic/log.h"

namespace foretoken::kernels::generic {
namespace {

constexpr int kNoiseWords = 4;  // of a block of noise: each serves one register of tokens
constexpr int kRaceGroup = kNoiseWords * kLanes;
constexpr float kNear = 0.29289323f;               // below this, 1 - v has fewer bits than v
constexpr float kLeastNoise = 0x1p-33f * 0.9999f;  // v is never less
constexpr float kHalfWords = 0x1p31f * 1.0001f;    // v is at least w / 2 times 2^-31
constexpr std::uint32_t kFactor0 = 0xD2511F53u, kFactor1 = 0xCD9E8D57u;
constexpr std::uint32_t kStep0 = 0x9E3779B9u, kStep1 = 0xBB67AE85u;
constexpr std::uint64_t kEvenNumbers[kLanes / 2] = {0, 2, 4, 6, 8, 10, 12, 14};

inline std::uint32_t High(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::uint32_t>((std::uint64_t{a} * b) >> 32);
}

// Philox4x32-10 of blocks of one race. The blocks differ only in the last word of the counter, so
// half of the first three rounds is the same for all. Words lie in the low halves of 64-bit lanes;
// what the high halves hold never matters.
template <class L>
class NoiseBlocks {
 public:
  explicit NoiseBlocks(const RaceNoise& noise) {
    const std::uint32_t* c = noise.counter;
    std::uint32_t k0 = noise.key[0], k1 = noise.key[1];
    const std::uint32_t a0 = High(kFactor1, c[2]) ^ c[1] ^ k0, a1 = kFactor1 * c[2];
    const std::uint32_t a3 = kFactor0 * c[0];
    first2_ = All(High(kFactor0, c[0]) ^ k1);
    k0 += kStep0, k1 += kStep1;
    const std::uint32_t b2 = High(kFactor0, a0) ^ a3 ^ k1, b3 = kFactor0 * a0;
    second0_ = All(a1 ^ k0);
    k0 += kStep0, k1 += kStep1;
    third0_ = All(High(kFactor1, b2) ^ k0);
    third1_ = All(kFactor1 * b2);
    third2_ = All(b3 ^ k1);
    for (int round = 0; round < kRounds; ++round) {
      k0 += kStep0, k1 += kStep1;
      key0_[round] = All(k0);
      key1_[round] = All(k1);
    }
  }

  // The words of the kWidth blocks from `block` on, each word in the order of the blocks.
  FORETOKEN_INLINE void Words(int block, typename L::U (&words)[kNoiseWords]) const {
    U64 lane;
    __builtin_memcpy(&lane, kEvenNumbers, sizeof lane);
    U64 c[kNoiseWords][2];  // of even and of odd blocks
#pragma GCC unroll 2
    for (int t = 0; t < 2; ++t) {
      const U64 index = lane + static_cast<std::uint64_t>(block + t);
      const U64 second = L::Product(index ^ first2_, kFactor1);
      const U64 b0 = (second >> 32) ^ second0_;
      const U64 third = L::Product(b0, kFactor0);
      c[0][t] = second ^ third0_;
      c[1][t] = third1_;
      c[2][t] = (third >> 32) ^ third2_;
      c[3][t] = third;
    }
#pragma GCC unroll 7
    for (int round = 0; round < kRounds; ++round) {
#pragma GCC unroll 2
      for (int t = 0; t < 2; ++t) {
        const U64 p0 = L::Product(c[0][t], kFactor0);
        const U64 p1 = L::Product(c[2][t], kFactor1);
        c[0][t] = (p1 >> 32) ^ c[1][t] ^ key0_[round];
        c[1][t] = p1;
        c[2][t] = (p0 >> 32) ^ c[3][t] ^ key1_[round];
        c[3][t] = p0;
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < kNoiseWords; ++j) words[j] = L::Weave(c[j][0], c[j][1]);
  }

 private:
  using U64 = typename L::U64;
  static U64 All(std::uint32_t x) {
    return U64{} + std::uint64_t{x};
  }

  static constexpr int kRounds = 7;  // the rounds that are computed in full
  U64 first2_, second0_, third0_, third1_, third2_;
  U64 key0_[kRounds], key1_[kRounds];
};

// (w + 0.5) * 2^-32, rounded once.
template <class L>
FORETOKEN_INLINE typename L::F Fraction(typename L::U w) {
  using I = typename L::I;
  const auto high = Floats<L>(__builtin_bit_cast(I, w >> 16));
  const auto low = Floats<L>(__builtin_bit_cast(I, w & 0xffffu));
  return L::Fma(high, L::All(65536.0f), low + L::All(0.5f)) * L::All(0x1p-32f);
}

template <class L>
FORETOKEN_INLINE typename L::F Exponential(typename L::U w) {
  const auto v = Fraction<L>(w);
  const auto near = L::Less(v, L::All(kNear));
  LogParts<L> parts = PartsOf<L>(Fraction<L>(~w));
  parts.n = L::Select(near, L::All(0.0f), parts.n);
  parts.f = L::Select(near, -v, parts.f);
  return -LogOf<L>(parts);
}

// The best token so far.
struct Leader {
  std::int32_t token = -1;
  float score = __builtin_inff();
  float least = 0.0f;              // a token whose p is not above this loses with any noise
  float limit = __builtin_inff();  // a token with w / 2 above limit * p loses

  void Take(std::int32_t x, float score_of_x) {
    if (token >= 0 && (score_of_x > score || (score_of_x == score && x > token))) return;
    token = x;
    score = score_of_x;
    least = kLeastNoise / score;
    limit = score * kHalfWords;
  }
};

// The tokens of one register, of which `able` may win; the first lane is token `first`.
template <class L>
void Challenge(typename L::U w, typename L::F p, typename L::Mask able, int first, Leader& leader) {
  unsigned runs = L::Bits(L::Both(able, L::Greater(p, L::All(0.0f))));
  if (runs == 0) return;
  float scores[L::kWidth];
  L::Store(Exponential<L>(w) / p, scores);
  for (; runs != 0; runs &= runs - 1) {
    const int lane = __builtin_ctz(runs);
    leader.Take(first + lane, scores[lane]);
  }
}

// The tokens first + {0, ..., kWidth - 1} + {0, 16, 32, 48}, whose noise blocks begin at `block`; p
// is that of the first of them.
template <class L>
FORETOKEN_INLINE void RunGroup(const NoiseBlocks<L>& blocks, int block, const float* p, int first,
                               Leader& leader) {
  typename L::F x[kNoiseWords];
  typename L::Mask mask[kNoiseWords];
#pragma GCC unroll 4
  for (int j = 0; j < kNoiseWords; ++j) {
    x[j] = L::Load(p + j * kLanes);
    mask[j] = L::Greater(x[j], L::All(leader.least));
  }
  const auto any = [&] {
    return L::Any(L::Either(L::Either(mask[0], mask[1]), L::Either(mask[2], mask[3])));
  };
  if (!any()) return;
  typename L::U words[kNoiseWords];
  blocks.Words(block, words);
#pragma GCC unroll 4
  for (int j = 0; j < kNoiseWords; ++j) {
    const auto half = Floats<L>(__builtin_bit_cast(typename L::I, words[j] >> 1));
    mask[j] = L::AtLeast(L::All(leader.limit) * x[j], half);
  }
  if (!any()) return;
  for (int j = 0; j < kNoiseWords; ++j)
    if (L::Any(mask[j])) Challenge<L>(words[j], x[j], mask[j], first + j * kLanes, leader);
}

template <class L>
RaceWinner Race(const float* p, int first, int n, const RaceNoise& noise) {
  const NoiseBlocks<L> blocks(noise);
  Leader leader;
  const int end = first + n - n % kRaceGroup;
  int x = first;
  for (; x < end; x += kRaceGroup, p += kRaceGroup)
    for (int lane = 0; lane < kLanes; lane += L::kWidth)
      RunGroup<L>(blocks, x / kNoiseWords + lane, p + lane, x + lane, leader);
  if (end == first + n) return {leader.token, leader.score};
  float rest[kRaceGroup] = {};
  for (int i = 0; i < n % kRaceGroup; ++i) rest[i] = p[i];
  for (int lane = 0; lane < kLanes; lane += L::kWidth)
    RunGroup<L>(blocks, x / kNoiseWords + lane, rest + lane, x + lane, leader);
  return {leader.token, leader.score};
}

}  // namespace
}  // namespace foretoken::kernels::generic
