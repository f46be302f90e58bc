// SPDX-License-Identifier: Apache-2.0
// base/rng.h: counter-based randomness. A random number is a pure function of (seed, request,
// position, stream). There is no state, so it does not depend on the batch, the rounds or the
// threads.
//
// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/ids.h"

namespace foretoken {

// One number serves one purpose. The values are part of what a seed means, so they never change;
// they are below 8. A drafter whose stream is kTarget draws with the target's own noise.
enum class Stream : std::uint32_t {
  kTarget = 0,      // a token of the target that takes one uniform number
  kDraft = 1,       // the drafter's token
  kCoin = 2,        // accept or reject
  kResidual = 3,    // the recovered token
  kSynthetic = 4,   // benchmark-only acceptance
  kTargetRace = 5,  // the target's own token at a position (plain decoding, bonus, sample-match)
};

// The Philox4x32-10 block function: counter and key to four uniform 32-bit words.
std::array<std::uint32_t, 4> Philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) noexcept;

// Uniform numbers that the caller gives, for the positions from `first` on. They replace the
// computed ones.
struct GivenUniforms {
  Pos first = 0;
  std::span<const double> coins;      // streams kCoin and kSynthetic
  std::span<const double> residuals;  // stream kResidual
  std::span<const double> targets;    // the target's own tokens, instead of a race
};

// The noise of one request. A small value; copies give the same numbers. If two differ in seed,
// request id (all 64 bits), stream, position (below 2^29) or index, their numbers are independent.
class Noise {
 public:
  Noise() = default;
  Noise(std::uint64_t seed, std::uint64_t request) noexcept : seed_(seed), request_(request) {}
  // `given` must outlive the noise. Its content at the time of a draw counts.
  Noise(std::uint64_t seed, std::uint64_t request, const GivenUniforms& given) noexcept
      : seed_(seed), request_(request), given_(&given) {}

  // Uniform in [0, 1) with 53 random bits. `index` separates numbers of one stream at one position
  // (0 unless stated).
  double Uniform(Stream stream, Pos position, std::uint32_t index = 0) const noexcept;

  // The input of Philox: the first three words of the counter (the index is the fourth) and the
  // key. For callers that need many numbers at once; Uniform takes two words of one block.
  std::array<std::uint32_t, 3> Counter(Stream stream, Pos position) const noexcept;
  std::array<std::uint32_t, 2> Key() const noexcept;

  std::uint64_t seed() const noexcept { return seed_; }
  // True if each token of the target takes one given number; then there are no numbers for a race.
  bool GivesTargets() const noexcept { return given_ != nullptr && !given_->targets.empty(); }

 private:
  std::uint64_t seed_ = 0;
  std::uint64_t request_ = 0;
  const GivenUniforms* given_ = nullptr;
};

}  // namespace foretoken
