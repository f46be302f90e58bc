// SPDX-License-Identifier: Apache-2.0
// base/seeded_hash.h: hashes for tables whose keys come from clients or files.
//
// Whoever knows a table's hash function can choose keys that all fall into one place, and then each
// look-up compares them all. These hashes use random numbers that each process draws for itself.
// They say where to look, and nothing else: whatever leaves the process, and the order of anything,
// must not depend on them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace foretoken {

std::uint64_t SeededHash(std::span<const std::byte> bytes) noexcept;

// The hash of a container of plain values or characters.
template <typename Values>
std::uint64_t SeededHashOf(const Values& values) noexcept {
  return SeededHash(std::as_bytes(std::span(values)));
}

// Two random numbers of the process, the second one odd.
const std::array<std::uint64_t, 2>& HashKeys() noexcept;

// The hash of one number, for tables that are looked up often: both halves of a 128-bit product.
inline std::uint64_t SeededHashOf(std::uint64_t number) noexcept {
  static const std::array<std::uint64_t, 2> keys = HashKeys();
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(number ^ keys[0]) * keys[1];
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// For the standard library's tables: std::unordered_map<std::string, int, SeededHasher>.
struct SeededHasher {
  std::size_t operator()(std::string_view text) const noexcept { return SeededHashOf(text); }
  std::size_t operator()(std::uint64_t number) const noexcept { return SeededHashOf(number); }
};

}  // namespace foretoken
