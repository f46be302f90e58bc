// SPDX-License-Identifier: Apache-2.0
// base/files/read_ahead.h: asks for pages of a mapped file before they are touched, so that the
// system reads them together and not one after another.
#pragma once

#include <cstddef>
#include <span>

namespace foretoken {

// Asks the system to read the pages of the range that are not in memory, and does not wait for them.
// Returns how many bytes those are. REQUIRES: the range is part of a mapped file. A microsecond for each
// MiB that is in memory. Allocates nothing.
std::size_t ReadAhead(std::span<const std::byte> range) noexcept;

}  // namespace foretoken
