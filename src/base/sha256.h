// SPDX-License-Identifier: Apache-2.0
// base/sha256.h: the SHA-256 of bytes (FIPS 180-4), for names of contents: nobody can make two
// contents that have the same one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace foretoken {

using Sha256 = std::array<std::byte, 32>;

// The hash of the first part with the second behind it.
Sha256 Sha256Of(std::span<const std::byte> first, std::span<const std::byte> second = {}) noexcept;

}  // namespace foretoken
