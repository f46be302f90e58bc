// SPDX-License-Identifier: Apache-2.0
// server/api/own_names.h: the fields of chats and completions in the words of an API whose requests are
// translated to them. Errors and notices begin with the name of a field.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/api/api_error.h"

namespace foretoken::server {

struct OwnName {
  std::string_view name, own;  // OpenAI's, and what the client has written
};

// A notice, or the name of a field: with its own name at the beginning, if it is one of these.
std::string InOwnNames(std::string text, std::span<const OwnName> names);
ApiError InOwnNames(ApiError error, std::span<const OwnName> names);

}  // namespace foretoken::server
