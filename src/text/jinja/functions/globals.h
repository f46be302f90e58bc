// SPDX-License-Identifier: Apache-2.0
// text/jinja/functions/globals.h: the functions that every template may call: range, dict,
// namespace, raise_exception, strftime_now.
#pragma once

#include <optional>

#include "text/jinja/functions/arguments.h"
#include "text/jinja/functions/environment.h"

namespace foretoken::text::jinja {

// The function of this name as a value, if there is one.
std::optional<Value> GlobalFunction(std::string_view name);
[[nodiscard]] Result<Value> CallGlobal(Environment& environment, std::string_view name,
                                       const Arguments& arguments);

}  // namespace foretoken::text::jinja
