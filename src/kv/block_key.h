// SPDX-License-Identifier: Apache-2.0
// kv/block_key.h: names of blocks that hold in every process: the hash of a block's tokens, of all tokens
// before them and of the text's salt. Equal keys mean equal texts.
#pragma once

#include <span>
#include <string_view>

#include "base/ids.h"
#include "base/sha256.h"

namespace foretoken::kv {

using BlockKey = Sha256;

// What stands before the first block of a text with this salt.
inline BlockKey RootKey(std::string_view salt) noexcept {
  constexpr std::string_view kWhat = "foretoken: texts of a salt: ";
  return Sha256Of(std::as_bytes(std::span(kWhat)), std::as_bytes(std::span(salt)));
}
// The block with these tokens behind the one with the key `before`.
inline BlockKey KeyAfter(const BlockKey& before, std::span<const Token> tokens) noexcept {
  return Sha256Of(before, std::as_bytes(tokens));
}

}  // namespace foretoken::kv
