// SPDX-License-Identifier: Apache-2.0
// attack/colliding_names.h: names that share one hash of a function that everybody knows.
#pragma once

#include <cstddef>
#include <string>

namespace foretoken::attack {

inline constexpr std::size_t kCollidingNames = 1024;  // different ones; then they come again

// All have one hash of FNV-1a (64 bits, a step for each character).
std::string CollidingName(std::size_t number);

}  // namespace foretoken::attack
