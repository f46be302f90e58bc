// SPDX-License-Identifier: Apache-2.0
// base/hash.h: a fast 64-bit hash of bytes (XXH3), the same on every machine. It protects against
// accidents, not against attackers: tables whose keys clients or files choose use
// base/seeded_hash.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace foretoken {

std::uint64_t Hash(std::span<const std::byte> bytes) noexcept;

// The hash of a container of plain values or characters.
template <typename Values>
std::uint64_t HashOf(const Values& values) noexcept {
  return Hash(std::as_bytes(std::span(values)));
}

}  // namespace foretoken
