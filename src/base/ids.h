// SPDX-License-Identifier: Apache-2.0
// base/ids.h: the three integers that everything is counted in.
#pragma once

#include <cstdint>

namespace foretoken {

using Token = std::int32_t;  // an index into the vocabulary; never negative where a token is meant
using Pos = std::int32_t;    // absolute position in a sequence, from 0
using SeqId = std::int32_t;  // index of a sequence in the engine and its caches, from 0

inline constexpr Token kNoToken = -1;

}  // namespace foretoken
