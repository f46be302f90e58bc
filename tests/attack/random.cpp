// SPDX-License-Identifier: Apache-2.0
#include "attack/random.h"

#include <algorithm>

namespace foretoken::attack {

std::vector<std::string> Words(std::string_view text, char between) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(between), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

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
