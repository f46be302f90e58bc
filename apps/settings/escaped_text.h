// SPDX-License-Identifier: Apache-2.0
// settings/escaped_text.h: text of models, files and requests, for terminals and logs.
#pragma once

#include <string>
#include <string_view>

namespace foretoken::settings {

// What a terminal would obey or a reader be misled by, as escapes: control characters but line
// breaks and tabs (\u001b), those that turn the direction of text (\u202e), and bytes that are no
// UTF-8 (\x9b). JSON that is given stays JSON with the same values. All else stays as it is.
std::string Escaped(std::string_view text);

}  // namespace foretoken::settings
