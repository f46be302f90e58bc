// SPDX-License-Identifier: Apache-2.0
#include "grammar/control_literal.h"

#include <charconv>

#include "base/control_text.h"

namespace foretoken::grammar {

std::string ControlLiteral(Token token) {
  return ControlText(std::to_string(token));
}

bool LooksLikeControl(std::string_view bytes) {
  return bytes.find(kControlBegin) != bytes.npos || bytes.find(kControlEnd) != bytes.npos;
}

std::vector<Token> CutWithControls(std::string_view bytes,
                                   const std::function<std::vector<Token>(std::string_view)>& cut) {
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
