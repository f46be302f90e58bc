// SPDX-License-Identifier: Apache-2.0
// base/chosen_keys_testing.h: keys that an attacker would choose, for tests of tables: those that
// collide under a hash function that everyone knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace foretoken {

// The smallest keys >= first whose place, hash(key) & mask, is below `window`.
inline std::uint64_t NextInWindow(std::uint64_t first, std::size_t mask, std::size_t window,
                                  const std::function<std::uint64_t(std::uint64_t)>& hash) {
  while ((hash(first) & mask) >= window) ++first;
  return first;
}

// x * InverseOf(x) is 1 modulo 2^64, for odd x.
constexpr std::uint64_t InverseOf(std::uint64_t odd) {
  std::uint64_t inverse = odd;
  for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// What x was, where y = x ^ (x >> shift).
constexpr std::uint64_t WithoutShift(std::uint64_t y, int shift) {
  std::uint64_t x = y;
  for (int i = 0; i < 64; i += shift) x = y ^ (x >> shift);
  return x;
}

// n texts of 16 bytes with one hash in the tables of libstdc++ (MurmurHash64A with its seed).
inline std::vector<std::string> TextsWithOneStandardHash(std::size_t n) {
  constexpr std::uint64_t kMultiplier = 0xc6a4a7935bd1e995u, kInverse = InverseOf(kMultiplier);
  constexpr std::uint64_t kStart = 0xc70f6907u ^ (16 * kMultiplier), kWanted = 0x1234567;
  const auto mixed = [](std::uint64_t word) {
    word *= kMultiplier;
    return (word ^ word >> 47) * kMultiplier;
  };
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t state = (kStart ^ mixed(i)) * kMultiplier;
    const std::uint64_t words[2] = {i, WithoutShift((state ^ kWanted) * kInverse, 47) * kInverse};
    texts.emplace_back(reinterpret_cast<const char*>(words), sizeof words);
  }
  return texts;
}

}  // namespace foretoken
