// SPDX-License-Identifier: Apache-2.0
// text/jinja/syntax/parser.h: a template's text to a tree.
#pragma once

#include <string_view>

#include "foretoken/result.h"
#include "text/jinja/syntax/node.h"

namespace foretoken::text::jinja {

// Errors: "line N: ..." where the text is not Jinja; kUnsupported for statements that load other
// templates; kTooLarge for more than 2^20 characters.
[[nodiscard]] Result<Block> Parse(std::string_view source);

}  // namespace foretoken::text::jinja
