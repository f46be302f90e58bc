// SPDX-License-Identifier: Apache-2.0
// text/jinja/syntax/string_literal.h: what a quoted text of a template means.
#pragma once

#include "foretoken/result.h"
#include "text/jinja/values/characters.h"

namespace foretoken::text::jinja {

// Resolves the escapes of Python's strings in the text between the quotes. A backslash before
// another character stays. Error: an escape that is cut off, or a name (\N).
[[nodiscard]] Result<Characters> Unescaped(CharactersView text);

}  // namespace foretoken::text::jinja
