// SPDX-License-Identifier: Apache-2.0
#include "base/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace foretoken {
namespace {

// Known answers of the Random123 distribution (kat_vectors, philox4x32 with 10 rounds).
TEST(Philox, MatchesTheKnownAnswers) {
  const std::array<std::uint32_t, 4> zeros = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), zeros);
  const std::array<std::uint32_t, 4> ones = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  EXPECT_EQ(Philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), ones);
  const std::array<std::uint32_t, 4> pi = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}), pi);
}

TEST(Noise, IsAPureFunctionThatSeparatesEveryArgument) {
  const Noise noise(7, 3);
  const double u = noise.Uniform(Stream::kCoin, 11);
  EXPECT_EQ(u, Noise(7, 3).Uniform(Stream::kCoin, 11));
  EXPECT_NE(u, Noise(8, 3).Uniform(Stream::kCoin, 11));
  EXPECT_NE(u, Noise(7, 4).Uniform(Stream::kCoin, 11));
  EXPECT_NE(u, noise.Uniform(Stream::kDraft, 11));
  EXPECT_NE(u, noise.Uniform(Stream::kCoin, 12));
  EXPECT_NE(u, noise.Uniform(Stream::kCoin, 11, 1));
}

TEST(Noise, NamesTheBlocksOfEachStreamApart) {
  const Noise noise(0x123456789abcdef0u, 0x00fedcba98765432u);
  EXPECT_EQ(noise.Key(), (std::array<std::uint32_t, 2>{0x9abcdef0u, 0x12345678u}));
  const auto race = noise.Counter(Stream::kTargetRace, 9);
  EXPECT_EQ(race, (std::array<std::uint32_t, 3>{9, 0x98765432u, 0xfedcba05u}));
  for (const Stream other :
       {Stream::kTarget, Stream::kDraft, Stream::kCoin, Stream::kResidual, Stream::kSynthetic}) {
    EXPECT_NE(noise.Counter(other, 9), race);
    const auto [first, second, third] = noise.Counter(other, 9);
    const auto block = Philox({first, second, third, 4}, noise.Key());
    EXPECT_EQ(noise.Uniform(other, 9, 4),
              static_cast<double>(((std::uint64_t{block[0]} << 32) | block[1]) >> 11) * 0x1.0p-53);
  }
}

// Known blocks of ids below 2^56: the texts of seeds that people have noted must not change.
TEST(Noise, OfIdsBelow2To56StaysAsItWas) {
  EXPECT_EQ(Noise(7, 0).Counter(Stream::kTarget, 5), (std::array<std::uint32_t, 3>{5, 0, 0}));
  EXPECT_EQ(Noise(7, 1).Counter(Stream::kTargetRace, (1 << 24) - 1),
            (std::array<std::uint32_t, 3>{0xffffff, 1, 5}));
  EXPECT_EQ(Noise(7, (std::uint64_t{1} << 56) - 1).Counter(Stream::kCoin, 0),
            (std::array<std::uint32_t, 3>{0, 0xffffffff, 0xffffff02}));
}

// Ids: each power of two, alone and together with another, and a few small and the largest ones; at
// positions of one bit, for all streams. A different counter is a different block, because Philox
// never maps two counters to one.
TEST(Noise, EveryRequestIdHasItsOwn) {
  std::set<std::uint64_t> ids = {0, 3, 5, ~std::uint64_t{0}, ~std::uint64_t{0} >> 8};
  for (int i = 0; i < 64; ++i)
    for (int j = 0; j <= i; ++j) ids.insert((std::uint64_t{1} << i) | (std::uint64_t{1} << j));
  std::vector<Pos> positions = {0};
  for (int bit = 0; bit < 24; ++bit) positions.push_back(1 << bit);
  std::set<std::array<std::uint32_t, 3>> blocks;
  std::set<double> draws;
  std::size_t n = 0;
  for (const std::uint64_t id : ids)
    for (const Pos position : positions)
      for (const Stream stream : {Stream::kTarget, Stream::kDraft, Stream::kCoin, Stream::kResidual,
                                  Stream::kSynthetic, Stream::kTargetRace}) {
        blocks.insert(Noise(1, id).Counter(stream, position));
        draws.insert(Noise(1, id).Uniform(stream, position));
        ++n;
      }
  EXPECT_EQ(blocks.size(), n);
  EXPECT_EQ(draws.size(), n);  // 53 bits: two of 313,000 agree by chance once in 184,000 such tests
}

TEST(Noise, IsUniformOverPositions) {
  const Noise noise(1, 0);
  constexpr int kDraws = 100000, kBins = 64;
  std::array<int, kBins> bins{};
  for (int i = 0; i < kDraws; ++i) {
    const double u = noise.Uniform(Stream::kTarget, i);
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++bins[static_cast<std::size_t>(u * kBins)];
  }
  double chi_square = 0;
  for (const int n : bins)
    chi_square += std::pow(n - double{kDraws} / kBins, 2) / (double{kDraws} / kBins);
  EXPECT_LT(chi_square, 120);  // 63 degrees of freedom: p = 1e-5
}

}  // namespace
}  // namespace foretoken
