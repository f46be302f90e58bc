// SPDX-License-Identifier: Apache-2.0
// text/jinja/syntax/token.h: the parts of a template's text.
#pragma once

#include <cstdint>
#include <string>

#include "text/jinja/values/characters.h"

namespace foretoken::text::jinja {

enum class TokenKind {
  kData,            // text outside of tags
  kOutputBegin,     // {{
  kOutputEnd,       // }}
  kStatementBegin,  // {%
  kStatementEnd,    // %}
  kName,
  kString,
  kInteger,
  kFloat,
  kSign,  // an operator or a bracket
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string word = {};  // of a name or a sign
  Characters text = {};   // of data and strings
  std::int64_t integer = 0;
  double number = 0;

  bool IsSign(std::string_view sign) const { return kind == TokenKind::kSign && word == sign; }
  bool IsName(std::string_view name) const { return kind == TokenKind::kName && word == name; }
};

}  // namespace foretoken::text::jinja
