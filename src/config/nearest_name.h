// SPDX-License-Identifier: Apache-2.0
// config/nearest_name.h: "did you mean ...?" for names of flags, keys and methods.
#pragma once

#include <span>
#include <string_view>

namespace foretoken {

// The known name with the fewest edits (insertions, deletions, replacements) from `name`; the first
// of equal ones. Empty if all are too far: more than two edits, or a third of the name's length if
// that is more.
std::string_view NearestName(std::string_view name, std::span<const std::string_view> known);

}  // namespace foretoken
