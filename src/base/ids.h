// SPDX-License-Identifier: Apache-2.0
// base/ids.h: the three integer types of tokens, positions and sequences.
#pragma once

#include <cstdint>

namespace foretoken {

using Token = std::int32_t;  // an index into the vocabulary; never negative, except kNoToken
using Pos = std::int32_t;    // absolute position in a sequence, from 0
using SeqId = std::int32_t;  // index of a sequence in the engine and its caches, from 0

inline constexpr Token kNoToken = -1;

}  // namespace foretoken
