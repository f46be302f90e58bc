// SPDX-License-Identifier: Apache-2.0
// text/jinja/values/printf_format.h: texts with places for values, as Python's `%` and
// str.format() fill them.
#pragma once

#include <span>

#include "text/jinja/values/name_table.h"

namespace foretoken::text::jinja {

// `arguments`: a tuple, a dictionary for places with names, or one value.
[[nodiscard]] Result<Characters> FormatByPercent(Budget& budget, CharactersView format,
                                                 const Value& arguments);

// Places are {}, {0} and {name}, with !r, !s and a format behind a colon.
[[nodiscard]] Result<Characters> FormatByBraces(Budget& budget, CharactersView format,
                                                std::span<const Value> positional,
                                                const NameTable& named);

}  // namespace foretoken::text::jinja
