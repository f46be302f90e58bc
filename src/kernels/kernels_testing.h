// SPDX-License-Identifier: Apache-2.0
// kernels/kernels_testing.h: what the tests of kernels share: every table of this processor, random
// numbers, and bitwise comparison.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/normal_testing.h"
#include "kernels/dispatch.h"

namespace foretoken::kernels {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kSentinel = 12345.5f;  // lies after the end of outputs and must stay

inline const Kernels& Scalar() {
  return KernelsFor(Isa::kScalar);
}

// Every table except the scalar one, which is the oracle of the others.
inline std::vector<const Kernels*> VectorTables() {
  std::vector<const Kernels*> tables;
  for (const Isa isa : AvailableIsas())
    if (isa != Isa::kScalar) tables.push_back(&KernelsFor(isa));
  return tables;
}

// Every size up to 70, and sizes around the blocks that kernels work in.
inline std::vector<int> Sizes() {
  std::vector<int> sizes;
  for (int n = 0; n <= 70; ++n) sizes.push_back(n);
  for (const int n : {127, 128, 255, 256, 257, 511, 1000, 1023, 1024, 1025, 2049, 4099})
    sizes.push_back(n);
  return sizes;
}

// Normal numbers, one in eight of them replaced by one of `specials`.
inline std::vector<float> Spiced(std::size_t n, std::uint32_t seed,
                                 std::span<const float> specials) {
  std::vector<float> x = Normal(n, seed);
  std::mt19937 engine(seed + 1);
  for (float& v : x)
    if (engine() % 8 == 0) v = specials[engine() % specials.size()];
  return x;
}

// Whether the bits are equal. Any NaN equals any other.
inline bool SameBits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

inline testing::AssertionResult SameBits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size())
    return testing::AssertionFailure() << a.size() << " and " << b.size() << " values";
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!SameBits(a[i], b[i]))
      return testing::AssertionFailure() << "[" << i << "]: " << a[i] << " and " << b[i];
  return testing::AssertionSuccess();
}

}  // namespace foretoken::kernels
