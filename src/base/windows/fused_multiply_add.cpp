// SPDX-License-Identifier: Apache-2.0
// The C library of mingw rounds a sum of float twice where the processor's own instruction is not used. Kernels need the
// bits of the exact one, so this takes its place in every program.
#include <bit>
#include <cmath>
#include <cstdint>

// The product is exact as a double. Where the sum is not, the one of its two neighbours is taken that is odd: what it
// rounds to as a float is then what the exact sum rounds to.
extern "C" float fmaf(float x, float y, float z) {
  const double product = static_cast<double>(x) * static_cast<double>(y);
  const double sum = product + static_cast<double>(z);
  if (!std::isfinite(sum)) return static_cast<float>(sum);
  const double added = sum - product;
  const double rest = (product - (sum - added)) + (static_cast<double>(z) - added);
  auto bits = std::bit_cast<std::uint64_t>(sum);
  if (rest != 0 && (bits & 1) == 0) bits += (rest > 0) == (sum > 0) ? 1 : -1;
  return static_cast<float>(std::bit_cast<double>(bits));
}
