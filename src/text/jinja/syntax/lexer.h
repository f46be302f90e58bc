// SPDX-License-Identifier: Apache-2.0
// text/jinja/syntax/lexer.h: a template's text to tokens, as Jinja 3.1 reads it with trim_blocks and
// lstrip_blocks: a line break behind a statement goes, and so does white space before one that
// begins a line.
#pragma once

#include <string_view>
#include <vector>

#include "foretoken/result.h"
#include "text/jinja/syntax/token.h"

namespace foretoken::text::jinja {

// The last token is kEnd. Error: kInvalidArgument, "line N: ...".
[[nodiscard]] Result<std::vector<Token>> Tokenize(std::string_view source);

}  // namespace foretoken::text::jinja
