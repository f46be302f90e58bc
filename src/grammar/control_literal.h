// SPDX-License-Identifier: Apache-2.0
// grammar/control_literal.h: a control token as bytes, so that a grammar may name one.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/control_text.h"
#include "base/ids.h"

namespace foretoken::grammar {

// What the vocabulary has as the text of a control token, and a grammar for <[id]>: by its number,
// because several may have one name. No character of a grammar has such bytes.
inline std::string ControlLiteral(Token token) {
  return ControlText(fmt::format("{}", token));
}

// Whether a token's bytes could be part of a control literal; then they may be no text of a
// vocabulary. No valid UTF-8 has them.
inline bool LooksLikeControl(std::string_view bytes) {
  return bytes.find(kControlBegin) != bytes.npos || bytes.find(kControlEnd) != bytes.npos;
}

// Cuts forced bytes into tokens: text by `cut`, control literals by their numbers. What is left of a
// literal at the end gives nothing.
template <typename Cut>
std::vector<Token> CutForced(std::string_view bytes, const Cut& cut) {
  std::vector<Token> tokens;
  while (!bytes.empty()) {
    const std::string_view text = bytes.substr(0, bytes.find(kControlBegin));
    if (!text.empty()) {
      const std::vector<Token> more = cut(text);
      tokens.insert(tokens.end(), more.begin(), more.end());
    }
    bytes.remove_prefix(text.size());
    const std::size_t end = bytes.find(kControlEnd);
    if (end == bytes.npos) break;
    Token token = 0;
    std::from_chars(bytes.data() + 1, bytes.data() + end, token);
    tokens.push_back(token);
    bytes.remove_prefix(end + 1);
  }
  return tokens;
}

}  // namespace foretoken::grammar
