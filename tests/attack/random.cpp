// SPDX-License-Identifier: Apache-2.0
#include "attack/random.h"

namespace foretoken::attack {

std::uint64_t Random::Next() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

Random RandomOf(std::uint64_t seed, std::uint64_t number) {
  return Random(Random(seed).Next() ^ (number * 0xD1342543DE82EF95u));
}

}  // namespace foretoken::attack
