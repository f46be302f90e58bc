// SPDX-License-Identifier: Apache-2.0
// calls/text_value.h: GBNF of an argument that is written as plain text, with what ends it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "calls/tool_parameters.h"

namespace foretoken::calls {

// How a text ends.
struct TextEnd {
  std::string items;  // GBNF: what follows a value that is known by its rule alone
  // Rules, of which `name`-0 is the first, for any text until its end, with what `items` says.
  std::function<std::string(std::string_view name)> free;
};

// Rules for a value of the parameter, with its end; the rule to call is `prefix`value. Its enum,
// const, pattern and lengths are followed; a notice says where one cannot be.
std::string TextValueRules(const Tool& tool, const Parameter& parameter, const std::string& prefix,
                           const TextEnd& end, std::vector<std::string>& notices);

}  // namespace foretoken::calls
