// SPDX-License-Identifier: Apache-2.0
// settings/escaped_text.h: makes text of models, files and requests safe for terminals and logs.
#pragma once

#include <string>
#include <string_view>

namespace foretoken::settings {

// Escapes what a terminal would obey or what would mislead a reader: control characters except line
// breaks and tabs (\u001b), those that turn the direction of text (\u202e), and bytes that are not
// UTF-8 (\x9b). JSON stays JSON with the same values. Everything else stays as it is.
std::string Escaped(std::string_view text);

}  // namespace foretoken::settings
