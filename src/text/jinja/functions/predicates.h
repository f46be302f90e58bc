// SPDX-License-Identifier: Apache-2.0
// text/jinja/functions/predicates.h: `value is name(arguments)`.
#pragma once

#include "text/jinja/functions/arguments.h"
#include "text/jinja/functions/environment.h"

namespace foretoken::text::jinja {

// Errors: those of the test; there is none of this name.
[[nodiscard]] Result<bool> TestHolds(Environment& environment, std::string_view name,
                                     const Value& input, const Arguments& arguments);

}  // namespace foretoken::text::jinja
