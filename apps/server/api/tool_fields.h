// SPDX-License-Identifier: Apache-2.0
// server/api/tool_fields.h: the fields of a chat that are about tools: tools, tool_choice and
// parallel_tool_calls.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/tool_use.h"
#include "server/api/json_fields.h"

namespace foretoken::server {

struct ToolFields {
  std::string json;    // the list as the client wrote it, for the template; empty: none
  calls::ToolUse use;  // no tools: the answer has no calls
};

// Errors go to fields; tools that no model can call
// here are named in notices.
[[nodiscard]] ToolFields ReadTools(JsonFields& fields, std::vector<std::string>& notices);

}  // namespace foretoken::server
