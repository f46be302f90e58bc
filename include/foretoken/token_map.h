// SPDX-License-Identifier: Apache-2.0
// foretoken/token_map.h: how a draft model of another vocabulary reads and writes a target's tokens.
//
// Two tokens are a pair if they stand for the same bytes and are of the same kind: both text, or both
// control tokens of one spelling. The tokens that begin a text are a pair too, and those that end one.
// A draft model may draft the tokens of the pairs: its distribution over them, renormalised, is that
// of the draft. It reads the target's text token by token: of a pair its own token, else its own
// encoding of the token's bytes; a control token without a counterpart is left out. So every position
// of the text has one reading, whatever follows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace foretoken {

struct TokenMap {
  struct Pair {
    std::int32_t target = 0, draft = 0;
  };
  int target = 0, draft = 0;  // numbers of tokens
  std::vector<Pair> pairs;    // ascending by the target's token; no token of either comes twice
  // The draft's tokens for each of the target's, one behind the other; those of token t begin at
  // begins[t] and end at begins[t + 1].
  std::vector<std::int32_t> tokens;
  std::vector<std::size_t> begins;

  // REQUIRES: 0 <= token < target.
  std::span<const std::int32_t> Reading(std::int32_t token) const {
    const auto at = static_cast<std::size_t>(token);
    return std::span(tokens).subspan(begins[at], begins[at + 1] - begins[at]);
  }
};

}  // namespace foretoken
