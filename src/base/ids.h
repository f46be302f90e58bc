// SPDX-License-Identifier: Apache-2.0
// base/ids.h: the integer types of tokens, positions, sequences and salts.
#pragma once

#include <cstdint>

namespace foretoken {

using Token = std::int32_t;  // an index into the vocabulary; never negative, except kNoToken
using Pos = std::int32_t;    // absolute position in a sequence, from 0
using SeqId = std::int32_t;  // index of a sequence in the engine and its caches, from 0
// Stands for a request's cache_salt, >= 0. What texts leave behind (blocks of the cache, texts that
// drafters learn from) serves requests of the same salt only.
using SaltId = std::int64_t;

inline constexpr Token kNoToken = -1;
inline constexpr SaltId kNoSalt = 0;  // of requests without one

}  // namespace foretoken
