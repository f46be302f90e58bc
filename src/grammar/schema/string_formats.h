// SPDX-License-Identifier: Apache-2.0
// grammar/schema/string_formats.h: JSON Schema's string formats as regular expressions.
#pragma once

#include <string_view>

namespace foretoken::grammar {

// Anchored. Empty: the format does not constrain.
std::string_view PatternOfFormat(std::string_view format);

}  // namespace foretoken::grammar
