// SPDX-License-Identifier: Apache-2.0
// server/api/json_tree.h: parses the body of a request.
//
// The time is linear in the text. The memory is bounded: nesting and the size of all values
// together are limited.
#pragma once

#include <string_view>

#include "server/api/api_error.h"
#include "server/api/json_fields.h"

namespace foretoken::server {

// Errors: the text is not one JSON object in UTF-8, has a member twice (one of them would be
// silently ignored), is nested too deeply, or has too many values.
[[nodiscard]] Parsed<Json> ReadJsonObject(std::string_view text);

}  // namespace foretoken::server
