// SPDX-License-Identifier: Apache-2.0
// calls/tool_parameters.h: the parameters of a tool, for forms that write each argument apart.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calls/tool_use.h"

namespace foretoken::calls {

// A parameter as the schema has it.
struct Parameter {
  std::string name, schema;  // JSON
  bool is_text = true;       // its value is a text
  bool required = false;
};

// In the schema's order; empty where the schema names none.
std::vector<Parameter> ParametersOf(const Tool& tool);

// The text as the inside of a JSON string. Bytes that mark control tokens are left out.
std::string InsideOfJsonString(std::string_view text);

}  // namespace foretoken::calls
