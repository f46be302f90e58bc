// SPDX-License-Identifier: Apache-2.0
// base/normal_testing.h: numbers of a normal distribution, for tests.
#pragma once

#include <concepts>
#include <cstdint>
#include <random>
#include <vector>

namespace foretoken {

inline std::vector<float> Normal(std::integral auto n, std::uint32_t seed, float deviation = 1,
                                 float mean = 0) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> draw(mean, deviation);
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) v = draw(engine);
  return x;
}

}  // namespace foretoken
