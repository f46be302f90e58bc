// SPDX-License-Identifier: Apache-2.0
// attack/random.h: the randomness that the damage of a file is drawn from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken::attack {

// The parts of a text, of which lists to pick from are made.
std::vector<std::string> Words(std::string_view text, char between = ' ');

// splitmix64: the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next();
  std::uint64_t Below(std::uint64_t n) { return n == 0 ? 0 : Next() % n; }
  bool OneIn(std::uint64_t n) { return Below(n) == 0; }
  template <typename List>
  auto& Pick(List& list) {
    return list[static_cast<std::size_t>(Below(std::size(list)))];
  }

 private:
  std::uint64_t state_;
};
// The stream of randomness of one file.
Random RandomOf(std::uint64_t seed, std::uint64_t number);

}  // namespace foretoken::attack
