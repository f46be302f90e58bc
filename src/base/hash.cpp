// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include <sys/random.h>

#include <array>
#include <random>

#include "base/seeded_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace foretoken {
namespace {

// All that XXH3 mixes into its input. Its own seed of 64 bits only shifts published constants; here
// each of them is drawn.
using HashSecret = std::array<std::uint32_t, 48>;
static_assert(sizeof(HashSecret) >= XXH3_SECRET_SIZE_MIN);

HashSecret DrawHashSecret() noexcept {
  HashSecret secret;
  const auto size = static_cast<ssize_t>(sizeof(secret));
  if (getrandom(secret.data(), sizeof(secret), 0) == size) return secret;
  // An old kernel. Where things lie in memory differs between processes, too.
  const auto place = reinterpret_cast<std::uintptr_t>(&secret);
  std::mt19937 numbers(static_cast<std::uint32_t>(place >> 4 ^ place >> 32));
  for (std::uint32_t& number : secret) number = static_cast<std::uint32_t>(numbers());
  return secret;
}

}  // namespace

std::uint64_t Hash(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t SeededHash(std::span<const std::byte> bytes) noexcept {
  static const HashSecret secret = DrawHashSecret();
  return XXH3_64bits_withSecret(bytes.data(), bytes.size(), secret.data(), sizeof(secret));
}

const std::array<std::uint64_t, 2>& HashKeys() noexcept {
  static const auto keys = [] {
    const HashSecret secret = DrawHashSecret();
    const auto word = [&](std::size_t i) {
      return static_cast<std::uint64_t>(secret[i]) << 32 | secret[i + 1];
    };
    return std::array<std::uint64_t, 2>{word(0), word(2) | 1};
  }();
  return keys;
}

}  // namespace foretoken
