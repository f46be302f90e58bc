// SPDX-License-Identifier: Apache-2.0
// server/json_tree.h: the body of a request, from text to values.
//
// The time is linear in the text, and the memory bounded: nesting is limited, and so is what all
// values take together.
#pragma once

#include <string_view>

#include "server/api_error.h"
#include "server/json_fields.h"

namespace foretoken::server {

// Errors: the text is not one JSON object in UTF-8, names a member twice (one of them would be
// silently ignored), is nested too deeply, or its values are too many.
[[nodiscard]] Parsed<Json> ReadJsonObject(std::string_view text);

}  // namespace foretoken::server
